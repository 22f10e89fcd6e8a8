#include "image/registry/access.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace osb::image::registry {
namespace {

struct Block {
  std::uint32_t network;
  int bits;
  Reach reach;
};

// Host byte order. The first match counts.
constexpr Block kBlocks[] = {
    {0x7f000000, 8, Reach::loopback}, {0x0a000000, 8, Reach::inside},  {0xac100000, 12, Reach::inside}, {0xc0a80000, 16, Reach::inside},
    {0x64400000, 10, Reach::inside},  {0xc6120000, 15, Reach::inside}, {0xa9fe0000, 16, Reach::local},  {0x00000000, 8, Reach::local},
    {0xc0000000, 24, Reach::local},   {0xe0000000, 4, Reach::local},   {0xf0000000, 4, Reach::local},
};

Reach reach_v4(std::uint32_t address) {
  for (const Block& block : kBlocks)
    if ((address ^ block.network) >> (32 - block.bits) == 0) return block.reach;
  return Reach::open;
}

std::uint32_t word_at(const unsigned char* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

Reach reach_v6(const in6_addr& address) {
  const unsigned char* b = address.s6_addr;
  if (IN6_IS_ADDR_LOOPBACK(&address)) return Reach::loopback;
  if (IN6_IS_ADDR_UNSPECIFIED(&address) || IN6_IS_ADDR_MULTICAST(&address) || IN6_IS_ADDR_LINKLOCAL(&address)) return Reach::local;
  if (IN6_IS_ADDR_V4MAPPED(&address) || IN6_IS_ADDR_V4COMPAT(&address)) return reach_v4(word_at(b + 12));
  static constexpr unsigned char kNat64[12] = {0x00, 0x64, 0xff, 0x9b};
  if (std::memcmp(b, kNat64, sizeof kNat64) == 0) return reach_v4(word_at(b + 12));
  if (b[0] == 0x20 && b[1] == 0x02) return reach_v4(word_at(b + 2));  // 6to4 carries an IPv4 address
  if ((b[0] & 0xfe) == 0xfc || (b[0] == 0xfe && (b[1] & 0xc0) == 0xc0)) return Reach::inside;
  return Reach::open;
}

Error not_there(std::string_view host, std::string_view why) {
  return Error(Errc::permission_denied, cat("not connecting to ", json_string(host.substr(0, 100)), ": ", why))
      .with_code("SANDBOX::IMAGE_PULL_REFUSED")
      .with_hint("if that is meant, the operator can list the host under images.trusted_hosts");
}

}  // namespace

Reach reach_of(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    return reach_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address->sa_family != AF_INET6) return Reach::local;
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof v6);
  return reach_v6(v6.sin6_addr);
}

bool lists(const std::vector<std::string>& list, const Origin& origin) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& item) {
    return item == origin.host || item == cat(origin.host, ':', origin.port) || item == cat('[', origin.host, "]:", origin.port);
  });
}

bool may_be_plain(const Origin& origin, const Registries& registries) {
  return is_loopback_name(origin.host) || lists(registries.insecure, origin);
}

Result<> check_reach(Reach to, Reach from, bool first, const Origin& origin, const Registries& registries) {
  if (lists(registries.trusted_hosts, origin)) return Ok{};
  if (to == Reach::local) return not_there(origin.host, "its address belongs to this machine's own surroundings");
  if (first || to == Reach::open || from != Reach::open) return Ok{};
  return not_there(origin.host, "a registry on the open network points at a private address");
}

RegistryAuth login_for(const Registries& registries, const std::string& registry) {
  auto found = registries.logins.find(registry);
  return found == registries.logins.end() ? RegistryAuth{} : found->second;
}

}  // namespace osb::image::registry
