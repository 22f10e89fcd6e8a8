#include "api/rpc/wire_form.h"

#include <bit>
#include <cstring>

#include "base/text.h"
#include "http/websocket.h"

namespace osb::api::rpc {
namespace {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

Error broken(std::string_view schema, std::string_view why) {
  return Error(Errc::malformed, cat("This is no ", schema, " message: ", why, ".")).with_code("GENERAL::MALFORMED");
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (rest_.empty()) return std::nullopt;
      auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      if (shift == 63 && byte > 1) return std::nullopt;
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  std::optional<std::string_view> take(std::uint64_t size) {
    if (size > rest_.size()) return std::nullopt;
    auto part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }
  std::optional<std::string_view> bytes() {
    auto size = varint();
    return size ? take(*size) : std::nullopt;
  }

 private:
  std::string_view rest_;
};

// One value as it stands on the wire.
struct Raw {
  WireType type = WireType::varint;
  std::uint64_t number = 0;
  std::string_view bytes;
};

std::optional<Raw> read_value(Reader& in, std::uint64_t type) {
  Raw raw;
  if (type == 0) {
    auto number = in.varint();
    if (number) raw.number = *number;
    return number ? std::optional(raw) : std::nullopt;
  }
  if (type != 1 && type != 2 && type != 5) return std::nullopt;
  raw.type = static_cast<WireType>(type);
  auto bytes = type == 2 ? in.bytes() : in.take(type == 1 ? 8 : 4);
  if (bytes) raw.bytes = *bytes;
  return bytes ? std::optional(raw) : std::nullopt;
}

WireType wire_type(Kind kind) {
  switch (kind) {
    case Kind::boolean:
    case Kind::int32:
    case Kind::uint32:
    case Kind::int64:
    case Kind::uint64: return WireType::varint;
    case Kind::number: return WireType::fixed64;
    case Kind::text:
    case Kind::bytes:
    case Kind::message:
    case Kind::map: return WireType::bytes;
  }
  return WireType::bytes;
}

double double_of(std::string_view bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = 8; i-- > 0;) bits = bits << 8 | static_cast<std::uint8_t>(bytes[i]);
  return std::bit_cast<double>(bits);
}

// An entry of a map<string, string>: a message with fields 1 and 2.
Result<> read_entry(std::string_view bytes, StringMap& map) {
  Reader in(bytes);
  std::string key, value;
  while (!in.done()) {
    auto tag = in.varint();
    auto raw = tag ? read_value(in, *tag & 7) : std::nullopt;
    if (!raw) return broken("map", "it is cut off");
    bool text = raw->type == WireType::bytes && http::is_utf8(raw->bytes);
    if (*tag >> 3 == 1 && text) key = raw->bytes;
    if (*tag >> 3 == 2 && text) value = raw->bytes;
    if ((*tag >> 3 == 1 || *tag >> 3 == 2) && !text) return broken("map", "a key or value is no UTF-8 text");
  }
  map.insert_or_assign(std::move(key), std::move(value));
  return Ok{};
}

template <class N>
Result<> store(std::uint64_t raw, void* place, std::string_view name) {
  auto value = static_cast<N>(raw);
  bool same =
      std::is_signed_v<N> ? static_cast<std::int64_t>(value) == static_cast<std::int64_t>(raw) : static_cast<std::uint64_t>(value) == raw;
  if (!same) return broken(name, "a number is out of its range");
  *static_cast<N*>(place) = value;
  return Ok{};
}

Result<> put(const Field& field, const Raw& raw, void* message) {
  void* place = field.add(message);
  switch (field.kind) {
    case Kind::text:
      if (!http::is_utf8(raw.bytes)) return broken(field.name, "the text is no UTF-8");
      [[fallthrough]];
    case Kind::bytes: *static_cast<std::string*>(place) = raw.bytes; return Ok{};
    case Kind::boolean: *static_cast<bool*>(place) = raw.number != 0; return Ok{};
    case Kind::int32: return store<std::int32_t>(raw.number, place, field.name);
    case Kind::uint32: return store<std::uint32_t>(raw.number, place, field.name);
    case Kind::int64: return store<std::int64_t>(raw.number, place, field.name);
    case Kind::uint64: return store<std::uint64_t>(raw.number, place, field.name);
    case Kind::number: *static_cast<double*>(place) = double_of(raw.bytes); return Ok{};
    case Kind::message: return from_wire(field.message(), raw.bytes, place);
    case Kind::map: return read_entry(raw.bytes, *static_cast<StringMap*>(place));
  }
  return Ok{};
}

void clear_others(const Schema& schema, const Field& chosen, void* message) {
  if (chosen.oneof == 0) return;
  for (const Field& field : schema.fields)
    if (field.oneof == chosen.oneof && &field != &chosen) field.clear(message);
}

const Field* find(const Schema& schema, std::uint64_t number) {
  for (const Field& field : schema.fields)
    if (field.number == number) return &field;
  return nullptr;
}

void append_tag(std::string& out, const Field& field) {
  append_varint(out, std::uint64_t{field.number} << 3 | static_cast<std::uint64_t>(wire_type(field.kind)));
}

void append_double(std::string& out, double value) {
  auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 0; i < 8; ++i, bits >>= 8) out += static_cast<char>(bits & 0xFF);
}

void append_entries(const Field& field, const StringMap& map, std::string& out) {
  for (const auto& [key, value] : map) {
    std::string entry;
    append_bytes_field(entry, 1, key);
    append_bytes_field(entry, 2, value);
    append_bytes_field(out, field.number, entry);
  }
}

template <class N>
void append_number(std::string& out, const Field& field, const void* value) {
  append_tag(out, field);
  append_varint(out, static_cast<std::uint64_t>(static_cast<std::int64_t>(*static_cast<const N*>(value))));
}

void append_value(const Field& field, const void* value, std::string& out) {
  switch (field.kind) {
    case Kind::text:
    case Kind::bytes: return append_bytes_field(out, field.number, *static_cast<const std::string*>(value));
    case Kind::boolean: append_tag(out, field); return append_varint(out, *static_cast<const bool*>(value) ? 1 : 0);
    case Kind::int32: return append_number<std::int32_t>(out, field, value);
    case Kind::uint32: return append_number<std::uint32_t>(out, field, value);
    case Kind::int64: return append_number<std::int64_t>(out, field, value);
    case Kind::uint64: return append_number<std::uint64_t>(out, field, value);
    case Kind::number: append_tag(out, field); return append_double(out, *static_cast<const double*>(value));
    case Kind::message: {
      std::string inner;
      append_to_wire(field.message(), value, inner);
      return append_bytes_field(out, field.number, inner);
    }
    case Kind::map: return append_entries(field, *static_cast<const StringMap*>(value), out);
  }
}

}  // namespace

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_bytes_field(std::string& out, std::uint32_t number, std::string_view bytes) {
  append_varint(out, std::uint64_t{number} << 3 | 2);
  append_varint(out, bytes.size());
  out += bytes;
}

Result<> from_wire(const Schema& schema, std::string_view bytes, void* message) {
  Reader in(bytes);
  while (!in.done()) {
    auto tag = in.varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > 0x1FFFFFFF) return broken(schema.name, "a field has no number");
    auto raw = read_value(in, *tag & 7);
    if (!raw) return broken(schema.name, "a field is cut off or of a kind nobody uses");
    const Field* field = find(schema, *tag >> 3);
    if (!field) continue;
    if (raw->type != wire_type(field->kind)) return broken(schema.name, cat(field->name, " has another type")).at(field->name);
    clear_others(schema, *field, message);
    CHECK_OK(put(*field, *raw, message));
  }
  return Ok{};
}

void append_to_wire(const Schema& schema, const void* message, std::string& out) {
  for (const Field& field : schema.fields) {
    auto count = field.kind == Kind::map ? 1 : field.count(message);
    for (std::size_t i = 0; i < count; ++i) append_value(field, field.at(message, i), out);
  }
}

}  // namespace osb::api::rpc
