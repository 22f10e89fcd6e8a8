// Answers what clients ask about the contracts (grpc.reflection.v1alpha and v1): files, symbols, the list of services.
//
// The descriptors come from spec/*.proto, compiled at build time and carried in the program.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::grpc_door {

class Reflection {
 public:
  static Result<Reflection> load();  // Errc::internal when the carried descriptors do not hold together
  Reflection(Reflection&&) noexcept;
  ~Reflection();

  // One ServerReflectionResponse for one ServerReflectionRequest, both as bytes; nullopt when the request is no such message.
  std::optional<std::string> answer(std::string_view request) const;
  static bool is_path(std::string_view path);

 private:
  struct Impl;
  explicit Reflection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace osb::grpc_door
