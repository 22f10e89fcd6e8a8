#include <algorithm>

#include "base/text.h"
#include "image/descriptor.h"
#include "image/json_text.h"
#include "image/plan.h"
#include "image/reference.h"
#include "image/sha256.h"

namespace osb::image {
namespace {

namespace json = boost::json;

constexpr int kMaxIndexDepth = 4;

Error refused(std::string what) { return Error(Errc::invalid_argument, std::move(what)); }

// A document by its digest: what is parsed is exactly what was promised.
Result<std::string> read_verified(const Bundle& bundle, const Descriptor& d) {
  TRY(auto text, bundle.read(d.member(), kMaxJson));
  if (text.size() != d.size) return refused(cat("blob ", d.hex, " has ", text.size(), " bytes, not ", d.size));
  if (std::string actual = sha256_hex(text); actual != d.hex) return refused(cat("blob ", d.hex, " has digest ", actual));
  return text;
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
  TRY(auto manifest, parse_manifest(text));
  TRY(auto config_text, read_verified(bundle, manifest.config));

  Plan plan{.name = chosen.name, .digest = cat("sha256:", chosen.hex), .config = {}, .layers = {}};
  if (plan.name.empty()) plan.name = docker_name(bundle);
  TRY(plan.config, parse_config(config_text));
  const auto& layers = manifest.layers;
  if (layers.size() != plan.config.diff_ids.size()) return refused("manifest and configuration disagree about the number of layers");
  for (std::size_t i = 0; i < layers.size(); ++i) plan.layers.push_back({layers[i].member(), layers[i].hex, plan.config.diff_ids[i]});
  return plan;
}

}  // namespace osb::image
