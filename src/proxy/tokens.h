// The per-sandbox tokens: derived from the server's secret, so nothing is stored and a restart changes nothing.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/id.h"

namespace osb::proxy {

class Tokens {
 public:
  explicit Tokens(std::string_view secret);
  std::string execd(const SandboxId& id) const { return derive("execd:", id); }    // X-EXECD-ACCESS-TOKEN
  std::string egress(const SandboxId& id) const { return derive("egress:", id); }  // OPENSANDBOX-EGRESS-AUTH
  std::string access(const SandboxId& id) const { return derive("access:", id); }  // OpenSandbox-Secure-Access

 private:
  std::string derive(std::string_view purpose, const SandboxId& id) const;  // 64 hex digits
  struct Keyed;                                                             // the hash after the secret, which is the same for every token
  std::shared_ptr<const Keyed> keyed_;
};

inline constexpr std::string_view kExecdTokenHeader = "X-EXECD-ACCESS-TOKEN";
inline constexpr std::string_view kEgressTokenHeader = "OPENSANDBOX-EGRESS-AUTH";
inline constexpr std::string_view kAccessTokenHeader = "OpenSandbox-Secure-Access";
inline constexpr std::uint16_t kExecdPort = 44772;
inline constexpr std::uint16_t kEgressPort = 18080;

}  // namespace osb::proxy
