// WWW-Authenticate: what a registry asks for before it answers.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace osb::image::registry {

struct Challenge {
  enum class Scheme { basic, bearer } scheme = Scheme::basic;
  std::string realm;
  std::string service;
};

// The strongest challenge we can answer among the fields of one response: Bearer before Basic. Other schemes are passed
// over; nullopt when none is left. invalid_argument for a Bearer challenge without a realm.
Result<std::optional<Challenge>> choose_challenge(const std::vector<std::string_view>& fields);

std::string base64(std::string_view bytes);

}  // namespace osb::image::registry
