#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "image/json_text.h"
#include "image/plan.h"
#include "image/reference.h"
#include "image/sha256.h"

namespace osb::image {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDescriptors = 1000;
constexpr int kMaxIndexDepth = 4;

Error refused(std::string what) { return Error(Errc::invalid_argument, std::move(what)); }

struct Descriptor {
  std::string media_type;
  std::string hex;
  std::uint64_t size = 0;
  std::string os;
  std::string architecture;
  std::string name;
  std::string member() const { return cat("blobs/sha256/", hex); }
};

bool is_index(const Descriptor& d) {
  return d.media_type == "application/vnd.oci.image.index.v1+json" ||
         d.media_type == "application/vnd.docker.distribution.manifest.list.v2+json";
}

bool is_manifest(const Descriptor& d) {
  return d.media_type == "application/vnd.oci.image.manifest.v1+json" ||
         d.media_type == "application/vnd.docker.distribution.manifest.v2+json";
}

// Compression is told by the bytes; the type only has to be one of a tar.
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

std::string name_in(const json::object& descriptor) {
  const json::object* notes = object_at(descriptor, "annotations");
  if (notes == nullptr) return {};
  if (std::string full = text_at(*notes, "io.containerd.image.name"); !full.empty()) return short_name(full);
  std::string ref = text_at(*notes, "org.opencontainers.image.ref.name");
  // Many tools write the bare tag here, which names nothing.
  return ref.find(':') == ref.npos ? std::string() : short_name(ref);
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

// A document by its digest: what is parsed is exactly what was promised.
Result<std::string> read_verified(const Bundle& bundle, const Descriptor& d) {
  TRY(auto text, bundle.read(d.member(), kMaxJson));
  if (text.size() != d.size) return refused(cat("blob ", d.hex, " has ", text.size(), " bytes, not ", d.size));
  if (std::string actual = sha256_hex(text); actual != d.hex) return refused(cat("blob ", d.hex, " has digest ", actual));
  return text;
}

bool is_for_this_host(const Descriptor& d) {
  bool untold = d.os.empty() && d.architecture.empty();
  return untold || (d.os == "linux" && d.architecture == host_architecture());
}

std::string names_of(const std::vector<Descriptor>& choices) {
  std::string names;
  for (const Descriptor& d : choices)
    names += cat(names.empty() ? "" : ", ", d.name.empty() ? cat("sha256:", d.hex) : json_string(d.name.substr(0, 80)));
  return names.substr(0, 400);
}

Result<Descriptor> choose(std::vector<Descriptor> all, const std::string& wanted) {
  std::string platforms;
  std::vector<Descriptor> choices;
  for (Descriptor& d : all) {
    platforms += cat(platforms.empty() ? "" : ", ", d.os, "/", d.architecture);
    if ((is_index(d) || is_manifest(d)) && is_for_this_host(d)) choices.push_back(std::move(d));
  }
  if (choices.empty() && !all.empty())
    return Error(Errc::unsupported,
                 cat("the image has no variant for linux/", host_architecture(), "; it has ", json_string(platforms.substr(0, 200))));
  if (choices.empty()) return refused("the layout names no image");
  for (Descriptor& d : choices)
    if (auto name = full_name(d.name); !wanted.empty() && name && *name == wanted) return std::move(d);
  bool same = std::all_of(choices.begin(), choices.end(), [&](const Descriptor& d) { return d.hex == choices.front().hex; });
  if (same) return std::move(choices.front());
  return refused(cat("the layout holds ", choices.size(), " images")).with_hint(cat("choose one by name: ", names_of(choices))).at("name");
}

// From the top index down to one manifest for this host. The name closest to the top is the image's.
Result<Descriptor> find_manifest(const Bundle& bundle, std::string index, const std::string& wanted) {
  std::string name;
  for (int depth = 0; depth < kMaxIndexDepth; ++depth) {
    TRY(auto value, parse_json(index, "index"));
    if (!value.is_object()) return refused("the index is not an object");
    TRY(auto all, descriptors_at(value.get_object(), "manifests"));
    TRY(auto chosen, choose(std::move(all), wanted));
    if (name.empty()) name = chosen.name;
    chosen.name = name;
    if (is_manifest(chosen)) return chosen;
    TRY(index, read_verified(bundle, chosen));
  }
  return refused("indexes are nested too deeply");
}

Result<> check_layout(const Bundle& bundle) {
  TRY(auto text, bundle.read("oci-layout", kMaxJson));
  TRY(auto value, parse_json(text, "oci-layout"));
  std::string version = value.is_object() ? text_at(value.get_object(), "imageLayoutVersion") : "";
  if (!version.starts_with("1.")) return Error(Errc::unsupported, cat("OCI layout version ", json_string(version.substr(0, 40))));
  return Ok{};
}

// docker writes the tag people know into manifest.json, and a longer one into the index.
std::string docker_name(const Bundle& bundle) {
  if (!bundle.has("manifest.json")) return {};
  auto text = bundle.read("manifest.json", kMaxJson);
  auto value = text ? parse_json(*text, "manifest.json") : Result<json::value>(text.error());
  if (!value || !value->is_array() || value->get_array().size() != 1 || !value->get_array()[0].is_object()) return {};
  auto tags = texts_at(value->get_array()[0].get_object(), "RepoTags");
  return tags.empty() ? std::string() : short_name(tags.front());
}

}  // namespace

Result<Plan> plan_oci(const Bundle& bundle, const std::string& wanted) {
  CHECK_OK(check_layout(bundle));
  TRY(auto index, bundle.read("index.json", kMaxJson));
  TRY(auto chosen, find_manifest(bundle, std::move(index), wanted));
  TRY(auto text, read_verified(bundle, chosen));
  TRY(auto value, parse_json(text, "manifest"));
  const json::object* manifest = value.if_object();
  const json::value* config_at = manifest == nullptr ? nullptr : manifest->if_contains("config");
  if (config_at == nullptr) return refused("the manifest has no configuration");
  TRY(auto config, parse_descriptor(*config_at));
  TRY(auto config_text, read_verified(bundle, config));

  Plan plan{.name = chosen.name, .digest = cat("sha256:", chosen.hex), .config = {}, .layers = {}};
  if (plan.name.empty()) plan.name = docker_name(bundle);
  TRY(plan.config, parse_config(config_text));
  TRY(auto layers, descriptors_at(*manifest, "layers"));
  if (layers.size() != plan.config.diff_ids.size()) return refused("manifest and configuration disagree about the number of layers");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!is_layer(layers[i])) return Error(Errc::unsupported, cat("layer of type ", json_string(layers[i].media_type.substr(0, 120))));
    plan.layers.push_back({layers[i].member(), layers[i].hex, plan.config.diff_ids[i]});
  }
  return plan;
}

}  // namespace osb::image
