#include "api/connect/protocol.h"

#include "base/text.h"

namespace osb::api::connect {
namespace {

using std::chrono::milliseconds;

struct Known {
  std::string_view type;
  Kind kind;
  rpc::Form form;
};
constexpr Known kKnown[] = {
    {"application/json", Kind::connect_unary, rpc::Form::json},
    {"application/proto", Kind::connect_unary, rpc::Form::binary},
    {"application/connect+json", Kind::connect_stream, rpc::Form::json},
    {"application/connect+proto", Kind::connect_stream, rpc::Form::binary},
    {"application/grpc-web", Kind::grpc_web, rpc::Form::binary},
    {"application/grpc-web+proto", Kind::grpc_web, rpc::Form::binary},
    {"application/grpc-web+json", Kind::grpc_web, rpc::Form::json},
    {"application/grpc-web-text", Kind::grpc_web_text, rpc::Form::binary},
    {"application/grpc-web-text+proto", Kind::grpc_web_text, rpc::Form::binary},
};

Error bad_timeout(std::string_view name) {
  return Error(Errc::invalid_argument, cat("The header ", name, " cannot be read.")).with_code("GENERAL::MALFORMED").at(name);
}

// At most eight digits and a unit.
std::optional<milliseconds> grpc_timeout(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  auto number = parse_int<std::uint32_t>(text.substr(0, text.size() - 1));
  if (!number) return std::nullopt;
  std::int64_t n = *number;
  switch (text.back()) {
    case 'H': return milliseconds(n * 3'600'000);
    case 'M': return milliseconds(n * 60'000);
    case 'S': return milliseconds(n * 1000);
    case 'm': return milliseconds(n);
    case 'u': return milliseconds(n / 1000);
    case 'n': return milliseconds(n / 1'000'000);
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<Protocol> protocol_of(std::string_view content_type) {
  auto media = to_lower(trim(content_type.substr(0, content_type.find(';'))));
  for (const Known& known : kKnown)
    if (known.type == media) return Protocol{known.kind, known.form, media};
  return std::nullopt;
}

Result<std::optional<milliseconds>> timeout_of(const http::Headers& headers) {
  if (auto text = headers.get("Connect-Timeout-Ms"); !text.empty()) {
    auto number = parse_int<std::uint64_t>(text);
    if (!number || text.size() > 10) return bad_timeout("Connect-Timeout-Ms");
    return std::optional(milliseconds(*number));
  }
  if (auto text = headers.get("grpc-timeout"); !text.empty()) {
    auto limit = grpc_timeout(text);
    if (!limit) return bad_timeout("grpc-timeout");
    return limit;
  }
  return std::optional<milliseconds>();
}

}  // namespace osb::api::connect
