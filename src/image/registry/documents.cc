#include "image/registry/documents.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "image/json_text.h"
#include "image/sha256.h"
#include "model/launch_wire.h"

namespace osb::image::registry {
namespace {

constexpr int kMaxIndexDepth = 3;

Error refused(std::string what) { return Error(Errc::invalid_argument, std::move(what)).with_code("SANDBOX::IMAGE_PULL_FAILED"); }

// Better variants first: what every processor of the architecture runs.
int rank(const Descriptor& d) {
  static constexpr std::array kOrder = {std::string_view(""), std::string_view("v8"), std::string_view("v1"), std::string_view("v2")};
  auto found = std::find(kOrder.begin(), kOrder.end(), d.variant);
  return found == kOrder.end() ? 100 : static_cast<int>(found - kOrder.begin());
}

Result<std::string> fetch(Session& session, const Session::Ask& ask, std::string* content_type) {
  for (int attempt = 0;; ++attempt) {
    auto answer = session.get(ask);
    if (answer && content_type != nullptr) *content_type = (*answer)->headers().get("Content-Type");
    auto text = answer ? (*answer)->read_all(kMaxJson) : Result<std::string>(std::move(answer).error());
    if (text || !is_passing(text.error()) || attempt + 1 >= kAttempts) return text;
    CHECK_OK(pause_before(attempt, session.stop()));
  }
}

Result<> check_digest(std::string_view text, const std::string& hex, std::string_view what) {
  if (std::string actual = sha256_hex(text); actual != hex) return refused(cat(what, " ", hex, " has digest ", actual));
  return Ok{};
}

struct Fetched {
  std::string type;
  std::string hex;
  std::string text;
};

Result<Fetched> fetch_manifest(Session& session, const std::string& selector) {
  static const std::string kAccept = cat(kOciIndex, ", ", kDockerList, ", ", kOciManifest, ", ", kDockerManifest);
  Fetched out;
  std::string content_type;
  TRY(out.text, fetch(session, {.path = cat("manifests/", selector), .accept = kAccept}, &content_type));
  out.hex = sha256_hex(out.text);
  if (selector.starts_with("sha256:")) CHECK_OK(check_digest(out.text, selector.substr(7), "manifest"));
  TRY(out.type, type_of(content_type, out.text));
  return out;
}

// From what the name stands for down to one manifest for this host.
Result<Fetched> find_manifest(Session& session) {
  TRY(auto found, fetch_manifest(session, session.name().selector()));
  for (int depth = 0; depth < kMaxIndexDepth; ++depth) {
    if (found.type == kOciManifest || found.type == kDockerManifest) return found;
    TRY(auto value, parse_json(found.text, "index"));
    if (!value.is_object()) return refused("the index is not an object");
    TRY(auto all, descriptors_at(value.get_object(), "manifests"));
    TRY(auto chosen, choose_platform(all));
    TRY(found, fetch_manifest(session, cat("sha256:", chosen.hex)));
    if (found.text.size() != chosen.size)
      return refused(cat("manifest ", chosen.hex, " has ", found.text.size(), " bytes, not ", chosen.size));
  }
  return refused("indexes are nested too deeply");
}

}  // namespace

Result<std::string> type_of(std::string_view content_type, std::string_view text) {
  std::string type(trim(content_type.substr(0, content_type.find(';'))));
  TRY(auto value, parse_json(text, "manifest"));
  if (!value.is_object()) return refused("the manifest is not an object");
  std::string own = text_at(value.get_object(), "mediaType");
  Descriptor told{.media_type = type};
  Descriptor said{.media_type = own};
  bool known = is_index(told) || is_manifest(told);
  // One answer with two meanings is how a registry would show one image to a scanner and another to us.
  if (known && !own.empty() && own != type) return refused("the manifest says another type than the registry");
  if (!known && (is_index(said) || is_manifest(said))) type = own;
  bool usable = known || is_index(said) || is_manifest(said);
  if (usable) return type;
  return Error(Errc::unsupported, cat("manifest of type ", json_string((own.empty() ? type : own).substr(0, 120))))
      .with_code("SANDBOX::IMAGE_PULL_FAILED")
      .with_hint("OCI images and Docker images of schema 2 can be pulled");
}

Result<Descriptor> choose_platform(const std::vector<Descriptor>& all) {
  const Descriptor* best = nullptr;
  std::string platforms;
  for (const Descriptor& d : all) {
    std::string platform = cat(d.os, "/", d.architecture, d.variant.empty() ? "" : "/", d.variant);
    if (d.os != "unknown") platforms += cat(platforms.empty() ? "" : ", ", platform);
    if ((!is_index(d) && !is_manifest(d)) || !is_for_this_host(d)) continue;
    if (best == nullptr || rank(d) < rank(*best)) best = &d;
  }
  if (best != nullptr) return *best;
  return Error(Errc::unsupported,
               cat("the image has no variant for linux/", host_architecture(), "; it has ", json_string(platforms.substr(0, 200))))
      .with_code("SANDBOX::IMAGE_PULL_FAILED");
}

Result<Documents> fetch_documents(Session& session) {
  TRY(auto found, find_manifest(session));
  Documents out;
  out.media_type = std::move(found.type);
  out.manifest_hex = std::move(found.hex);
  out.manifest_text = std::move(found.text);
  TRY(out.manifest, parse_manifest(out.manifest_text));
  if (out.manifest.layers.empty()) return refused("the image has no layers");
  if (out.manifest.layers.size() > wire::kMaxLayers)
    return Error(Errc::unsupported, cat("the image has more than ", wire::kMaxLayers, " layers"))
        .with_code("SANDBOX::IMAGE_PULL_FAILED")
        .with_hint("squash it into fewer layers");
  const Descriptor& config = out.manifest.config;
  if (config.size > kMaxJson) return Error(Errc::too_large, cat("the image configuration has ", config.size, " bytes"));
  TRY(out.config_text, fetch(session, {.path = cat("blobs/sha256:", config.hex)}, nullptr));
  if (out.config_text.size() != config.size)
    return refused(cat("the image configuration has ", out.config_text.size(), " bytes, not ", config.size));
  CHECK_OK(check_digest(out.config_text, config.hex, "image configuration"));
  TRY(auto parsed, parse_config(out.config_text));
  if (parsed.diff_ids.size() != out.manifest.layers.size())
    return refused("manifest and configuration disagree about the number of layers");
  out.diff_ids = std::move(parsed.diff_ids);
  return out;
}

}  // namespace osb::image::registry
