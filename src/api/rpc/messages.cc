#include "api/rpc/messages.h"

#include "api/rpc/json_form.h"
#include "api/rpc/wire_form.h"
#include "base/text.h"

namespace osb::api::rpc {

template <>
const Schema& schema_of<Timestamp>() {
  static constexpr Field kFields[] = {
      field<&Timestamp::seconds>(1, "seconds", "seconds", Kind::int64, 0, nullptr),
      field<&Timestamp::nanos>(2, "nanos", "nanos", Kind::int32, 0, nullptr),
  };
  static constexpr Schema kSchema{"Timestamp", kFields};
  return kSchema;
}

#include "api/rpc/session_messages.inc"

std::string_view service_name() { return kServiceName; }
std::span<const MethodShape> method_shapes() { return kMethodShapes; }

Timestamp to_timestamp(WallTime time) {
  auto seconds = time.micros / 1'000'000 - (time.micros % 1'000'000 < 0 ? 1 : 0);
  return {seconds, static_cast<std::int32_t>((time.micros - seconds * 1'000'000) * 1000)};
}

Result<> decode(const Schema& schema, Form form, std::string_view bytes, void* message) {
  if (bytes.size() > kMaxRequestBytes) return Error(Errc::too_large, cat("A message has at most ", kMaxRequestBytes, " bytes."));
  return form == Form::json ? from_json(schema, bytes, message) : from_wire(schema, bytes, message);
}

std::string encode(const Schema& schema, Form form, const void* message) {
  std::string out;
  if (form == Form::json) {
    append_as_json(schema, message, out);
  } else {
    append_to_wire(schema, message, out);
  }
  return out;
}

}  // namespace osb::api::rpc
