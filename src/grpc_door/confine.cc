#include "grpc_door/confine.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
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
  if (abi < 1)
    return Error(Errc::unsupported, "this kernel has no Landlock, so opensandbox-grpc could read files of the host")
        .with_hint("boot with lsm=landlock,... (Linux 5.13 or later), or serve without gRPC (grpc.enabled: false)");
  sys::raw::LandlockRuleset rules{.handled_fs = sys::raw::landlock_fs_rights(abi),
                                  .handled_net = sys::raw::landlock_net_rights(abi),
                                  .scoped = sys::raw::landlock_scopes(abi)};
  Fd ruleset(sys::raw::landlock_create_ruleset(rules, abi));
  if (!ruleset) return Error::from_errno("landlock_create_ruleset", errno);
  if (sys::raw::landlock_restrict_self(ruleset.get()) != 0) return Error::from_errno("landlock_restrict_self", errno);
  return Ok{};
}

}  // namespace

Result<> confine(std::size_t connections, std::size_t calls) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error::from_errno("no_new_privs", errno);
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return Error::from_errno("dumpable", errno);
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
