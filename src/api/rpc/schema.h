// What a message of the session service looks like, for the codecs: the structs themselves are generated from spec/*.proto
// (generated/api/rpc/session_messages.h), and so are the tables that name their fields.
//
// One table serves both forms on the wire (binary protobuf and proto3 JSON); neither knows any message by name.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/sandbox.h"

namespace osb::api::rpc {

enum class Kind : std::uint8_t { text, bytes, boolean, int32, uint32, int64, uint64, number, message, map };

struct Schema;

// The functions look at one message without knowing its type. A map is one value: the StringMap itself.
struct Field {
  std::uint32_t number;
  std::string_view name;       // session_id
  std::string_view json_name;  // sessionId
  Kind kind;
  int oneof;                          // fields of a message with the same number exclude each other; 0 = none
  const Schema& (*message)();         // of Kind::message
  std::size_t (*count)(const void*);  // values to be written: none where a plain field has its default
  const void* (*at)(const void*, std::size_t);
  void* (*add)(void*);  // where the next value is to be put
  void (*clear)(void*);
  bool repeated;
};

struct Schema {
  std::string_view name;
  std::span<const Field> fields;
};

template <class Message>
const Schema& schema_of();

struct MethodShape {
  std::string_view name;
  bool client_streams;
  bool server_streams;
};

// google.protobuf.Timestamp
struct Timestamp {
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
};
template <>
const Schema& schema_of<Timestamp>();

namespace detail {

template <class T>
struct Holder {  // a plain field
  static std::size_t count(const T& field) { return field == T{} ? 0 : 1; }
  static const void* at(const T& field, std::size_t) { return &field; }
  static void* add(T& field) { return &field; }
  static constexpr bool kRepeated = false;
};
template <class T>
struct Holder<std::optional<T>> {
  static std::size_t count(const std::optional<T>& field) { return field ? 1 : 0; }
  static const void* at(const std::optional<T>& field, std::size_t) { return &*field; }
  // A message that comes twice is merged, a value is replaced.
  static void* add(std::optional<T>& field) { return field ? &*field : &field.emplace(); }
  static constexpr bool kRepeated = false;
};
template <class T>
struct Holder<std::vector<T>> {
  static std::size_t count(const std::vector<T>& field) { return field.size(); }
  static const void* at(const std::vector<T>& field, std::size_t i) { return &field[i]; }
  static void* add(std::vector<T>& field) { return &field.emplace_back(); }
  static constexpr bool kRepeated = true;
};

template <class>
struct MemberOf;
template <class M, class T>
struct MemberOf<T M::*> {
  using Message = M;
  using Type = T;
};

}  // namespace detail

template <auto Member>
constexpr Field field(std::uint32_t number, std::string_view name, std::string_view json_name, Kind kind, int oneof,
                      const Schema& (*message)()) {
  using M = typename detail::MemberOf<decltype(Member)>::Message;
  using T = typename detail::MemberOf<decltype(Member)>::Type;
  using H = detail::Holder<T>;
  return {number,
          name,
          json_name,
          kind,
          oneof,
          message,
          [](const void* m) { return H::count(static_cast<const M*>(m)->*Member); },
          [](const void* m, std::size_t i) { return H::at(static_cast<const M*>(m)->*Member, i); },
          [](void* m) { return H::add(static_cast<M*>(m)->*Member); },
          [](void* m) { static_cast<M*>(m)->*Member = T{}; },
          H::kRepeated};
}

}  // namespace osb::api::rpc
