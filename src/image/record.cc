#include "image/record.h"

#include "base/text.h"
#include "image/json_text.h"
#include "image/sha256.h"

namespace osb::image {

namespace json = boost::json;

std::string to_record(const Image& image) {
  json::array layers;
  for (const std::string& layer : image.layers) layers.emplace_back(layer);
  json::array sizes;
  for (std::uint64_t bytes : image.layer_bytes) sizes.emplace_back(bytes);
  json::array env;
  for (const auto& [name, value] : image.env) env.emplace_back(json::array{name, value});
  json::object record{{"version", 1},
                      {"name", image.name},
                      {"digest", image.digest},
                      {"layers", std::move(layers)},
                      {"layer_bytes", std::move(sizes)},
                      {"host_view", image.host_view},
                      {"env", std::move(env)},
                      {"working_dir", image.working_dir},
                      {"size_bytes", image.size_bytes},
                      {"created_at", image.created_at},
                      {"snapshot_layers", image.snapshot_layers}};
  return json::serialize(record) + "\n";
}

Result<Image> from_record(std::string_view text) {
  TRY(auto value, parse_json(text, "image record"));
  const json::object* record = value.if_object();
  if (record == nullptr || size_at(*record, "version") != 1) return Error(Errc::internal, "image record of another version");
  Image image;
  image.name = text_at(*record, "name");
  image.digest = text_at(*record, "digest");
  image.layers = texts_at(*record, "layers");
  image.working_dir = text_at(*record, "working_dir");
  image.size_bytes = size_at(*record, "size_bytes");
  image.created_at = text_at(*record, "created_at");
  image.snapshot_layers = size_at(*record, "snapshot_layers");
  const json::value* host_view = record->if_contains("host_view");
  image.host_view = host_view != nullptr && host_view->is_bool() && host_view->get_bool();
  if (const json::array* env = array_at(*record, "env"))
    for (const json::value& pair : *env)
      if (const json::array* two = pair.if_array(); two != nullptr && two->size() == 2 && (*two)[0].is_string() && (*two)[1].is_string())
        image.env.emplace_back(std::string((*two)[0].get_string()), std::string((*two)[1].get_string()));
  if (const json::array* sizes = array_at(*record, "layer_bytes"); sizes != nullptr && sizes->size() == image.layers.size())
    for (const json::value& bytes : *sizes) image.layer_bytes.push_back(bytes.is_number() ? bytes.to_number<std::uint64_t>() : 0);
  if (image.name.empty() || image.digest.empty() || image.layers.empty()) return Error(Errc::internal, "image record lacks a member");
  for (const std::string& layer : image.layers)
    if (!is_sha256_hex(layer)) return Error(Errc::internal, "image record names a layer that is no digest");
  return image;
}

}  // namespace osb::image
