#include "grpc_door/confine.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/log.h"
#include "sys/raw.h"

namespace osb::grpc_door {
namespace {

[[maybe_unused]] constexpr rlim_t kAddressSpace = 3ull << 30;
constexpr rlim_t kSpareDescriptors = 128;

Result<> bound(__rlimit_resource what, rlim_t most) {
  rlimit limit{};
  if (::getrlimit(what, &limit) != 0) return Error::from_errno("getrlimit", errno);
  limit.rlim_max = std::min(limit.rlim_max, most);
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(what, &limit) != 0) return Error::from_errno("setrlimit", errno);
  return Ok{};
}

// Everything that is handled is refused: there is not one rule.
Result<> refuse_files() {
  int abi = sys::raw::landlock_abi();
  if (abi < 1) {
    log::warn("this kernel has no Landlock; files are not closed to opensandbox-grpc");
    return Ok{};
  }
  constexpr std::uint64_t kRights[] = {0x1FFF, 0x3FFF, 0x7FFF, 0x7FFF, 0xFFFF};
  sys::raw::LandlockRuleset rules{};
  rules.handled_fs = kRights[std::min<std::size_t>(static_cast<std::size_t>(abi), std::size(kRights)) - 1];
  std::size_t size = sizeof rules.handled_fs;
  if (abi >= 4) {
    rules.handled_net = 3;  // bind and connect
    size += sizeof rules.handled_net;
  }
  if (abi >= 6) {
    rules.scoped = 3;  // abstract sockets and signals of others
    size += sizeof rules.scoped;
  }
  Fd ruleset(sys::raw::landlock_create_ruleset(rules, size));
  if (!ruleset) return Error::from_errno("landlock_create_ruleset", errno);
  if (sys::raw::landlock_restrict_self(ruleset.get()) != 0) return Error::from_errno("landlock_restrict_self", errno);
  return Ok{};
}

}  // namespace

Result<> confine(std::size_t connections, std::size_t calls) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error::from_errno("no_new_privs", errno);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  CHECK_OK(bound(RLIMIT_CORE, 0));
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  // Sanitizers reserve more addresses than any program uses.
  CHECK_OK(bound(RLIMIT_AS, kAddressSpace));
#endif
  // Three for a connection (the client's and the pair), one for a call.
  CHECK_OK(bound(RLIMIT_NOFILE, 3 * connections + calls + kSpareDescriptors));
  CHECK_OK(refuse_files());
  if (sys::raw::drop_capabilities() != 0) return Error::from_errno("capset", errno);
  return Ok{};
}

}  // namespace osb::grpc_door
