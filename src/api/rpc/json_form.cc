#include "api/rpc/json_form.h"

#include <charconv>
#include <cmath>

#include "api/rpc/messages.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/json.h"

namespace osb::api::rpc {
namespace {

namespace json = boost::json;

Error wrong(std::string path, std::string_view expected) {
  return Error(Errc::malformed, cat(path, " must be ", expected, ".")).with_code("GENERAL::MALFORMED").at(path);
}

std::string below(const std::string& path, std::string_view name) { return path.empty() ? std::string(name) : cat(path, ".", name); }

const Field* find(const Schema& schema, std::string_view name) {
  for (const Field& field : schema.fields)
    if (field.name == name || field.json_name == name) return &field;
  return nullptr;
}

Error unknown(const Schema& schema, const std::string& path) {
  std::string known;
  for (const Field& field : schema.fields) known += cat(known.empty() ? "" : ", ", field.json_name);
  return Error(Errc::invalid_argument, cat("There is no field ", path.substr(0, 128), "."))
      .with_code("SESSION::UNKNOWN_FIELD")
      .at(path.substr(0, 128))
      .with_hint(known.empty() ? "This message has no fields." : cat("There are: ", known, "."));
}

// A whole number, also as text or as 1.0 and 1e3; nullopt when it does not fit.
template <class N>
std::optional<N> whole(const json::value& value) {
  if (value.is_string()) return parse_int<N>(std::string_view(value.get_string()));
  if (const auto* number = value.if_int64()) {
    if (std::in_range<N>(*number)) return static_cast<N>(*number);
  } else if (const auto* large = value.if_uint64()) {
    if (std::in_range<N>(*large)) return static_cast<N>(*large);
  } else if (const auto* real = value.if_double()) {
    constexpr double kSafe = 9007199254740992.0;  // past it a double does not say which whole number was meant
    if (std::trunc(*real) == *real && std::abs(*real) <= kSafe && std::in_range<N>(static_cast<std::int64_t>(*real)))
      return static_cast<N>(*real);
  }
  return std::nullopt;
}

std::optional<double> real(const json::value& value) {
  if (const auto* number = value.if_double()) return *number;
  if (const auto* number = value.if_int64()) return static_cast<double>(*number);
  if (const auto* number = value.if_uint64()) return static_cast<double>(*number);
  if (!value.is_string()) return std::nullopt;
  std::string_view text = value.get_string();
  double number = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

template <class T>
Result<> assign(const Field& field, void* message, std::optional<T> value, const std::string& path, std::string_view expected) {
  if (!value) return wrong(path, expected);
  *static_cast<T*>(field.add(message)) = *std::move(value);
  return Ok{};
}

std::optional<std::string> text_of(const json::value& value) {
  return value.is_string() ? std::optional<std::string>(std::string_view(value.get_string())) : std::nullopt;
}

Result<> read_object(const Schema& schema, const json::value& value, void* message, const std::string& path);

Result<> read_map(const json::value& value, StringMap& map, const std::string& path) {
  if (!value.is_object()) return wrong(path, "an object of strings");
  for (const auto& member : value.get_object()) {
    auto text = text_of(member.value());
    if (!text) return wrong(below(path, member.key()), "a string");
    map.insert_or_assign(std::string(member.key()), *std::move(text));
  }
  return Ok{};
}

Result<> read_timestamp(const json::value& value, Timestamp& into, const std::string& path) {
  auto text = text_of(value);
  auto time = text ? parse_rfc3339(*text) : std::nullopt;
  if (!time) return wrong(path, "a time such as 2026-01-02T03:04:05Z");
  into = to_timestamp(*time);
  return Ok{};
}

Result<> read_one(const Field& field, const json::value& value, void* message, const std::string& path) {
  switch (field.kind) {
    case Kind::text: return assign(field, message, text_of(value), path, "a string");
    case Kind::bytes: {
      auto text = text_of(value);
      return assign(field, message, text ? from_base64(*text) : std::nullopt, path, "base64 text");
    }
    case Kind::boolean:
      return assign(field, message, value.is_bool() ? std::optional(value.get_bool()) : std::nullopt, path, "true or false");
    case Kind::int32: return assign(field, message, whole<std::int32_t>(value), path, "a whole number of 32 bits");
    case Kind::uint32: return assign(field, message, whole<std::uint32_t>(value), path, "a whole number from 0, of 32 bits");
    case Kind::int64: return assign(field, message, whole<std::int64_t>(value), path, "a whole number of 64 bits");
    case Kind::uint64: return assign(field, message, whole<std::uint64_t>(value), path, "a whole number from 0, of 64 bits");
    case Kind::number: return assign(field, message, real(value), path, "a number");
    case Kind::map: return read_map(value, *static_cast<StringMap*>(field.add(message)), path);
    case Kind::message:
      if (&field.message() == &schema_of<Timestamp>()) return read_timestamp(value, *static_cast<Timestamp*>(field.add(message)), path);
      return read_object(field.message(), value, field.add(message), path);
  }
  return Ok{};
}

Result<> read_list(const Field& field, const json::value& value, void* message, const std::string& path) {
  if (!value.is_array()) return wrong(path, "a list");
  std::size_t index = 0;
  for (const auto& item : value.get_array()) CHECK_OK(read_one(field, item, message, cat(path, "[", index++, "]")));
  return Ok{};
}

// Two members of one oneof, or one field under both of its names, would leave open which one counts.
Result<> refuse_twice(const Schema& schema, const Field& field, const void* message, const std::string& path) {
  for (const Field& other : schema.fields) {
    bool rival = &other == &field || (field.oneof != 0 && other.oneof == field.oneof);
    if (rival && other.count(message) > 0) return wrong(path, cat("given once, and not beside ", other.json_name));
  }
  return Ok{};
}

Result<> read_object(const Schema& schema, const json::value& value, void* message, const std::string& path) {
  if (!value.is_object()) return wrong(path.empty() ? std::string("The message") : path, "an object");
  for (const auto& member : value.get_object()) {
    auto here = below(path, member.key());
    const Field* field = find(schema, member.key());
    if (!field) return unknown(schema, here);
    if (member.value().is_null()) continue;
    CHECK_OK(refuse_twice(schema, *field, message, here));
    CHECK_OK(field->repeated ? read_list(*field, member.value(), message, here) : read_one(*field, member.value(), message, here));
  }
  return Ok{};
}

void append_real(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    return;
  }
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_timestamp(const Timestamp& time, std::string& out) {
  out += cat('"', format_rfc3339(WallTime{time.seconds * 1'000'000 + time.nanos / 1000}), '"');
}

template <class N>
void append_quoted(std::string& out, const void* value) {
  out += cat('"', *static_cast<const N*>(value), '"');
}

void append_one(const Field& field, const void* value, std::string& out) {
  switch (field.kind) {
    case Kind::text: return append_json_string(out, *static_cast<const std::string*>(value));
    case Kind::bytes: out += cat('"', base64(*static_cast<const std::string*>(value)), '"'); return;
    case Kind::boolean: return append(out, *static_cast<const bool*>(value));
    case Kind::int32: return append(out, *static_cast<const std::int32_t*>(value));
    case Kind::uint32: return append(out, *static_cast<const std::uint32_t*>(value));
    case Kind::int64: return append_quoted<std::int64_t>(out, value);
    case Kind::uint64: return append_quoted<std::uint64_t>(out, value);
    case Kind::number: return append_real(out, *static_cast<const double*>(value));
    case Kind::map: return append_json_map(out, *static_cast<const StringMap*>(value));
    case Kind::message:
      if (&field.message() == &schema_of<Timestamp>()) return append_timestamp(*static_cast<const Timestamp*>(value), out);
      return append_as_json(field.message(), value, out);
  }
}

void append_list(const Field& field, const void* message, std::size_t count, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    append_one(field, field.at(message, i), out);
  }
  out += ']';
}

}  // namespace

Result<> from_json(const Schema& schema, std::string_view text, void* message) {
  // Limits are those of the binary form; base64 and names make the text longer than what it says.
  TRY(auto value, parse_json(text, {kMaxRequestBytes, kMaxJsonDepth}));
  return read_object(schema, value, message, {});
}

void append_as_json(const Schema& schema, const void* message, std::string& out) {
  out += '{';
  bool first = true;
  for (const Field& field : schema.fields) {
    auto count = field.count(message);
    if (count == 0) continue;
    out += cat(first ? "" : ",", '"', field.json_name, "\":");
    first = false;
    if (field.repeated) {
      append_list(field, message, count, out);
    } else {
      append_one(field, field.at(message, 0), out);
    }
  }
  out += '}';
}

std::string base64_unpadded(std::string_view bytes) {
  auto text = base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) c = c == '-' ? '+' : c == '_' ? '/' : c;
  if (plain.find('=') == std::string::npos) plain.append((4 - plain.size() % 4) % 4, '=');
  return decode_base64(plain);
}

}  // namespace osb::api::rpc
