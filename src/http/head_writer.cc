#include "http/head_writer.h"

#include <algorithm>

#include "base/text.h"

namespace osb::http {
namespace {

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [name](std::string_view other) { return iequals(name, other); });
}

bool is_framing(std::string_view name) { return is_any_of(name, {"Content-Length", "Transfer-Encoding", "Keep-Alive"}); }

bool may_be_sent(const Headers& headers) {
  for (const auto& field : headers.fields())
    if (!is_token(field.name) || !is_field_value(field.value)) return false;
  return true;
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ", 2).append(value).append("\r\n", 2);
}

void append_framing(std::string& out, std::optional<std::uint64_t> length, bool chunked) {
  if (length) append_all(out, "Content-Length: ", *length, "\r\n");
  if (chunked) out += "Transfer-Encoding: chunked\r\n";
}

bool is_target(std::string_view target) {
  if (target.empty() || (target[0] != '/' && target != "*")) return false;
  return std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

bool is_field_value(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

bool append_head(std::string& out, const ResponseHead& head) {
  if (head.status < 100 || head.status > 599 || !may_be_sent(head.headers)) return false;
  append_all(out, "HTTP/1.1 ", head.status, " ", reason_phrase(head.status), "\r\n");
  for (const auto& field : head.headers.fields()) {
    if (is_framing(field.name) || is_any_of(field.name, {"Connection", "X-Request-ID"})) continue;
    append_field(out, field.name, field.value);
  }
  append_framing(out, head.length, head.chunked);
  if (head.upgrade) out += "Connection: Upgrade\r\n";
  if (head.close) out += "Connection: close\r\n";
  append_field(out, "X-Request-ID", head.request_id);
  out += "\r\n";
  return true;
}

bool append_head(std::string& out, const RequestHead& head) {
  if (!is_token(head.method) || !is_target(head.target) || !may_be_sent(head.headers)) return false;
  append_all(out, head.method, " ", head.target, " HTTP/1.1\r\n");
  auto hosts = head.headers.count("Host");
  append_field(out, "Host", hosts == 1 ? head.headers.get("Host") : head.default_host);
  for (const auto& field : head.headers.fields()) {
    if (is_framing(field.name) || iequals(field.name, "Host")) continue;
    append_field(out, field.name, field.value);
  }
  append_framing(out, head.length, head.chunked);
  out += "\r\n";
  return true;
}

void append_chunk_size(std::string& out, std::size_t size) {
  char digits[20];
  auto end = std::to_chars(digits, digits + sizeof digits, size, 16).ptr;
  out.append(digits, end).append("\r\n");
}

std::string error_json(std::string_view code, std::string_view message) {
  std::string out = "{\"code\":";
  append_json_string(out, code);
  out += ",\"message\":";
  append_json_string(out, message);
  out += "}";
  return out;
}

}  // namespace osb::http
