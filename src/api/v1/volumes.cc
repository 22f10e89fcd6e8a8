#include "api/json_text.h"
#include "api/v1/handlers.h"
#include "base/text.h"
#include "http/http.h"
#include "model/json.h"
#include "model/volume_request.h"

namespace osb::api::v1 {
namespace {

struct VolumeRequest {
  std::string name;
  std::uint64_t size_bytes = 0;
};

Result<VolumeRequest> parse_volume(std::string_view body) {
  TRY(auto object, parse_json_object(body));
  VolumeRequest out;
  const auto* name = object.if_contains("name");
  if (name == nullptr || !name->is_string() || !is_volume_name(std::string_view(name->get_string()), 253))
    return Error(Errc::invalid_argument, "name must be lowercase letters, digits and '-'.")
        .with_code("VOLUME::INVALID_PVC_NAME")
        .at("name");
  out.name = name->get_string();
  const auto* size = object.if_contains("size");
  if (size == nullptr || size->is_null()) return out;
  if (!size->is_string()) return Error(Errc::malformed, "size must be a string such as 1Gi.").at("size");
  auto bytes = parse_volume_size(std::string_view(size->get_string()));
  if (!bytes) return Error(Errc::malformed, cat("size ", bytes.error().what(), ".")).at("size");
  out.size_bytes = *bytes;
  return out;
}

std::string volume_json(const Volume& volume, std::size_t sandboxes) {
  ObjectText text;
  text.add("name", volume.name).add("sizeBytes", volume.size_bytes).add("onDemand", volume.on_demand).add("sandboxes", sandboxes);
  text.add("shared", volume.owner.empty()).add("createdAt", format_rfc3339(volume.created_at));
  return std::move(text).done();
}

}  // namespace

Reply list_volumes(Context& context, Call call) {
  ObjectText text;
  auto& items = text.key("items");
  items += '[';
  for (const auto& [volume, sandboxes] : context.lifecycle.volumes().list(call.caller)) {
    if (items.back() != '[') items += ',';
    items += volume_json(volume, sandboxes);
  }
  items += ']';
  co_return http::Response::json(200, std::move(text).done());
}

Reply create_volume(Context& context, Call call) {
  CO_TRY(auto request, parse_volume(call.body));
  CO_TRY(auto volume, context.lifecycle.volumes().create(request.name, request.size_bytes, call.caller));
  co_return http::Response::json(201, volume_json(volume, 0));
}

Reply delete_volume(Context& context, Call call) {
  CO_TRY([[maybe_unused]] auto done, context.lifecycle.volumes().remove(std::string(call.param("name")), call.caller));
  co_return http::Response::empty(204);
}

}  // namespace osb::api::v1
