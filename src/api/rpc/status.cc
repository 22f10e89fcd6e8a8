#include "api/rpc/status.h"

#include "api/rpc/json_form.h"
#include "api/rpc/wire_form.h"
#include "api/sessions/render.h"
#include "base/text.h"
#include "lifecycle/admission.h"

namespace osb::api::rpc {
namespace {

constexpr std::string_view kInfoType = "google.rpc.ErrorInfo";

std::string_view connect_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::cancelled: return "canceled";
    case Code::invalid_argument: return "invalid_argument";
    case Code::deadline_exceeded: return "deadline_exceeded";
    case Code::not_found: return "not_found";
    case Code::permission_denied: return "permission_denied";
    case Code::resource_exhausted: return "resource_exhausted";
    case Code::failed_precondition: return "failed_precondition";
    case Code::unimplemented: return "unimplemented";
    case Code::internal: return "internal";
    case Code::unavailable: return "unavailable";
    case Code::unauthenticated: return "unauthenticated";
  }
  return "unknown";
}

std::vector<std::pair<std::string_view, std::string>> facts(const Status& status) {
  std::vector<std::pair<std::string_view, std::string>> out;
  // A refused command names the rule where others name the field at fault.
  bool by_rule = status.code == Code::permission_denied && status.reason.starts_with("COMMAND::");
  if (!status.field.empty()) out.emplace_back(by_rule ? "rule" : "field", status.field);
  if (!status.advice.empty()) out.emplace_back("advice", status.advice);
  if (status.retry_after_seconds > 0) out.emplace_back("retry_after_seconds", cat(status.retry_after_seconds));
  return out;
}

// google.rpc.ErrorInfo: reason 1, domain 2, metadata 3 (a map).
std::string error_info(const Status& status) {
  std::string info;
  append_bytes_field(info, 1, status.reason);
  append_bytes_field(info, 2, "opensandbox");
  for (const auto& [name, value] : facts(status)) {
    std::string entry;
    append_bytes_field(entry, 1, name);
    append_bytes_field(entry, 2, value);
    append_bytes_field(info, 3, entry);
  }
  return info;
}

// google.rpc.Status: code 1, message 2, details 3 (google.protobuf.Any: type_url 1, value 2).
std::string details(const Status& status) {
  std::string any;
  append_bytes_field(any, 1, cat("type.googleapis.com/", kInfoType));
  append_bytes_field(any, 2, error_info(status));
  std::string out;
  append_varint(out, 1 << 3);
  append_varint(out, static_cast<std::uint64_t>(status.code));
  append_bytes_field(out, 2, status.message);
  append_bytes_field(out, 3, any);
  return out;
}

// grpc-message: what is not printable ASCII, and the percent sign, is percent-encoded.
std::string percent(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    auto byte = static_cast<std::uint8_t>(c);
    if (byte >= 0x20 && byte <= 0x7E && c != '%') {
      out += c;
    } else {
      out += cat('%', kHex[byte >> 4], kHex[byte & 15]);
    }
  }
  return out;
}

}  // namespace

Code code_of(Errc kind) {
  switch (kind) {
    case Errc::invalid_argument:
    case Errc::malformed: return Code::invalid_argument;
    case Errc::not_found: return Code::not_found;
    case Errc::conflict: return Code::failed_precondition;
    case Errc::unauthenticated: return Code::unauthenticated;
    case Errc::permission_denied: return Code::permission_denied;
    case Errc::too_large:
    case Errc::exhausted: return Code::resource_exhausted;
    case Errc::unavailable: return Code::unavailable;
    case Errc::unsupported: return Code::unimplemented;
    case Errc::timeout: return Code::deadline_exceeded;
    case Errc::internal: return Code::internal;
  }
  return Code::internal;
}

Status to_status(const Error& error) {
  Status status;
  status.code = error.code() == "GENERAL::CANCELLED" ? Code::cancelled : code_of(error.kind());
  status.message = sessions::message_of(error);
  status.reason = sessions::code_of(error);
  status.field = error.field();
  status.advice = error.hint();
  status.retry_after_seconds = lifecycle::retry_after_seconds(error.code());
  return status;
}

std::vector<std::pair<std::string, std::string>> trailers(const Status& status) {
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("grpc-status", cat(static_cast<int>(status.code)));
  if (status.code == Code::ok) return out;
  out.emplace_back("grpc-message", percent(status.message));
  out.emplace_back("grpc-status-details-bin", base64_unpadded(details(status)));
  out.emplace_back("opensandbox-error-code", percent(status.reason));
  if (!status.field.empty()) out.emplace_back("opensandbox-error-field", percent(status.field));
  return out;
}

std::string connect_error(const Status& status) {
  std::string debug = cat("{\"reason\":", json_string(status.reason), ",\"domain\":\"opensandbox\",\"metadata\":{");
  bool first = true;
  for (const auto& [name, value] : facts(status)) {
    debug += cat(first ? "" : ",", json_string(name), ":", json_string(value));
    first = false;
  }
  return cat("{\"code\":\"", connect_name(status.code), "\",\"message\":", json_string(status.message), ",\"details\":[{\"type\":\"",
             kInfoType, "\",\"value\":\"", base64_unpadded(error_info(status)), "\",\"debug\":", debug, "}}}]}");
}

int connect_http_status(Code code) {
  switch (code) {
    case Code::ok: return 200;
    case Code::cancelled: return 499;
    case Code::invalid_argument:
    case Code::failed_precondition: return 400;
    case Code::deadline_exceeded: return 504;
    case Code::not_found: return 404;
    case Code::permission_denied: return 403;
    case Code::resource_exhausted: return 429;
    case Code::unimplemented: return 501;
    case Code::internal: return 500;
    case Code::unavailable: return 503;
    case Code::unauthenticated: return 401;
  }
  return 500;
}

}  // namespace osb::api::rpc
