#include "execd/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace osb::execd {
namespace {

constexpr int kPrograms[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_NET_BIND_SERVICE};

bool for_programs(int capability) { return std::find(std::begin(kPrograms), std::end(kPrograms), capability) != std::end(kPrograms); }

Result<> give_up(unsigned capability) {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &head, sets) != 0) return Error::from_errno("capget", errno);
  sets[0].effective &= ~(1u << capability);
  sets[0].permitted &= ~(1u << capability);
  sets[0].inheritable = sets[1].inheritable = 0;
  if (::syscall(SYS_capset, &head, sets) != 0) return Error::from_errno("capset", errno);
  return Ok{};
}

}  // namespace

Result<> shed_privileges(bool root_mode) {
  for (int capability = 0; capability < 64; ++capability) {
    int held = ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (held < 0) break;  // past the last one this kernel knows
    if (held == 0 || (root_mode && for_programs(capability))) continue;
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return Error::from_errno(cat("drop capability ", capability), errno);
  }
  return give_up(CAP_SETPCAP);
}

Result<> own_files_as(unsigned uid, unsigned gid) {
  ::setfsgid(gid);
  ::setfsuid(uid);
  // Both return the value before, whatever happened: ask again with one that is never valid.
  bool set =
      static_cast<unsigned>(::setfsgid(static_cast<gid_t>(-1))) == gid && static_cast<unsigned>(::setfsuid(static_cast<uid_t>(-1))) == uid;
  if (!set) return Error::from_errno("set the owner of files", EPERM);
  return Ok{};
}

}  // namespace osb::execd
