// Ids that cannot be mixed up: 26 characters [a-z0-9] carrying 128 random bits.
#pragma once
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace osb {

inline constexpr std::size_t kIdLength = 26;

bool is_id_text(std::string_view text) noexcept;
std::string random_id_text();               // 26 x [a-z0-9]
std::string random_hex(std::size_t bytes);  // lowercase, 2 characters a byte; from getrandom(2)

// Id<struct SandboxTag> and Id<struct KeyTag> are different types.
template <class Tag>
class Id {
 public:
  static Id random() { return Id(random_id_text()); }
  // nullopt unless the text has exactly the shape of an id, so that an id is always safe in a path.
  static std::optional<Id> parse(std::string_view text) {
    if (!is_id_text(text)) return std::nullopt;
    return Id(std::string(text));
  }
  const std::string& text() const noexcept { return text_; }
  auto operator<=>(const Id&) const = default;

 private:
  explicit Id(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

using SandboxId = Id<struct SandboxTag>;

}  // namespace osb
