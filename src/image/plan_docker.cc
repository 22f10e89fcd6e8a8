#include <algorithm>

#include "base/text.h"
#include "image/json_text.h"
#include "image/layer_writer.h"
#include "image/plan.h"
#include "image/reference.h"
#include "image/sha256.h"

namespace osb::image {
namespace {

namespace json = boost::json;

Error refused(std::string what) { return Error(Errc::invalid_argument, std::move(what)); }

bool carries(const json::object& image, const std::string& wanted) {
  for (const std::string& tag : texts_at(image, "RepoTags"))
    if (auto name = full_name(short_name(tag)); name && *name == wanted) return true;
  return false;
}

Result<const json::object*> choose(const json::array& images, const std::string& wanted) {
  std::string held;
  const json::object* only = nullptr;
  for (const json::value& value : images) {
    const json::object* image = value.if_object();
    if (image == nullptr) return refused("manifest.json has the wrong shape");
    if (!wanted.empty() && carries(*image, wanted)) return image;
    for (const std::string& tag : texts_at(*image, "RepoTags")) held += cat(held.empty() ? "" : ", ", json_string(tag.substr(0, 80)));
    only = image;
  }
  if (images.size() == 1 && only != nullptr) return only;
  if (images.empty()) return refused("manifest.json names no image");
  return refused(cat("the archive holds ", images.size(), " images"))
      .with_hint(cat("choose one by name: ", held.substr(0, 400)))
      .at("name");
}

// "<hex>.json" and "blobs/sha256/<hex>" promise the digest of what they hold.
std::string promised_digest(std::string_view member) {
  std::size_t slash = member.rfind('/');
  std::string_view base = slash == member.npos ? member : member.substr(slash + 1);
  std::string_view stem = base.substr(0, base.find('.'));
  bool promises = member.starts_with("blobs/sha256/") || (slash == member.npos && base.ends_with(".json"));
  return promises && is_sha256_hex(stem) ? std::string(stem) : std::string();
}

}  // namespace

Result<Plan> plan_docker(const Bundle& bundle, const std::string& wanted) {
  TRY(auto text, bundle.read("manifest.json", kMaxJson));
  TRY(auto value, parse_json(text, "manifest.json"));
  const json::array* images = value.if_array();
  if (images == nullptr) return refused("manifest.json has the wrong shape");
  TRY(const json::object* image, choose(*images, wanted));

  Plan plan;
  TRY(auto member, clean_path(text_at(*image, "Config")));
  TRY(auto config, bundle.read(member, kMaxJson));
  std::string digest = sha256_hex(config);
  if (std::string promised = promised_digest(member); !promised.empty() && promised != digest)
    return refused(cat("the image configuration has digest ", digest, ", not ", promised, " as its name says"));
  plan.digest = cat("sha256:", digest);
  TRY(plan.config, parse_config(config));

  auto layers = texts_at(*image, "Layers");
  if (layers.size() != plan.config.diff_ids.size())
    return refused("manifest.json and the image configuration disagree about the number of layers");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    TRY(auto layer, clean_path(layers[i]));
    std::string blob = layer.starts_with("blobs/") ? promised_digest(layer) : "";
    plan.layers.push_back({layer, blob, plan.config.diff_ids[i]});
  }
  auto tags = texts_at(*image, "RepoTags");
  if (!tags.empty()) plan.name = short_name(tags.front());
  return plan;
}

}  // namespace osb::image
