#include "image/descriptor.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "image/json_text.h"
#include "image/plan.h"
#include "image/reference.h"
#include "image/sha256.h"

namespace osb::image {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDescriptors = 1000;

Error refused(std::string what) { return Error(Errc::invalid_argument, std::move(what)); }

std::string name_in(const json::object& descriptor) {
  const json::object* notes = object_at(descriptor, "annotations");
  if (notes == nullptr) return {};
  if (std::string full = text_at(*notes, "io.containerd.image.name"); !full.empty()) return short_name(full);
  std::string ref = text_at(*notes, "org.opencontainers.image.ref.name");
  // Many tools write the bare tag here, which names nothing.
  return ref.find(':') == ref.npos ? std::string() : short_name(ref);
}

}  // namespace

std::string Descriptor::member() const { return cat("blobs/sha256/", hex); }

bool is_index(const Descriptor& d) { return d.media_type == kOciIndex || d.media_type == kDockerList; }
bool is_manifest(const Descriptor& d) { return d.media_type == kOciManifest || d.media_type == kDockerManifest; }

bool is_layer(const Descriptor& d) {
  static constexpr std::array kPrefixes = {std::string_view("application/vnd.oci.image.layer.v1.tar"),
                                           std::string_view("application/vnd.oci.image.layer.nondistributable.v1.tar"),
                                           std::string_view("application/vnd.docker.image.rootfs.diff.tar"),
                                           std::string_view("application/vnd.docker.image.rootfs.foreign.diff.tar")};
  static constexpr std::array kEnds = {std::string_view(""), std::string_view("+gzip"), std::string_view("+zstd"),
                                       std::string_view(".gzip"), std::string_view(".zstd")};
  for (std::string_view prefix : kPrefixes) {
    if (!d.media_type.starts_with(prefix)) continue;
    std::string_view rest = std::string_view(d.media_type).substr(prefix.size());
    return std::find(kEnds.begin(), kEnds.end(), rest) != kEnds.end();
  }
  return false;
}

bool is_for_this_host(const Descriptor& d) {
  bool untold = d.os.empty() && d.architecture.empty();
  return untold || (d.os == "linux" && d.architecture == host_architecture());
}

Result<Descriptor> parse_descriptor(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return refused("a descriptor is not an object");
  Descriptor d;
  std::string digest = text_at(*object, "digest");
  if (!digest.starts_with("sha256:") || !is_sha256_hex(std::string_view(digest).substr(7)))
    return Error(Errc::unsupported, cat("digest ", json_string(digest.substr(0, 80)), " is not sha256"));
  d.hex = digest.substr(7);
  d.media_type = text_at(*object, "mediaType");
  d.size = size_at(*object, "size");
  d.name = name_in(*object);
  if (const json::object* platform = object_at(*object, "platform")) {
    d.os = text_at(*platform, "os");
    d.architecture = text_at(*platform, "architecture");
    d.variant = text_at(*platform, "variant");
  }
  return d;
}

Result<std::vector<Descriptor>> descriptors_at(const json::object& in, std::string_view key) {
  std::vector<Descriptor> found;
  const json::array* array = array_at(in, key);
  if (array == nullptr) return refused(cat("\"", key, "\" is missing"));
  if (array->size() > kMaxDescriptors) return Error(Errc::too_large, cat("more than ", kMaxDescriptors, " ", key));
  for (const json::value& value : *array) {
    TRY(auto descriptor, parse_descriptor(value));
    found.push_back(std::move(descriptor));
  }
  return found;
}

Result<Manifest> parse_manifest(std::string_view text) {
  TRY(auto value, parse_json(text, "manifest"));
  const json::object* object = value.if_object();
  const json::value* config = object == nullptr ? nullptr : object->if_contains("config");
  if (config == nullptr) return refused("the manifest has no configuration");
  Manifest manifest;
  TRY(manifest.config, parse_descriptor(*config));
  TRY(manifest.layers, descriptors_at(*object, "layers"));
  for (const Descriptor& layer : manifest.layers)
    if (!is_layer(layer)) return Error(Errc::unsupported, cat("layer of type ", json_string(layer.media_type.substr(0, 120))));
  return manifest;
}

}  // namespace osb::image
