// execd's own capabilities in a native sandbox: given up as far as its programs will never need them.
#pragma once
#include "base/result.h"

namespace osb::execd {

// Empties the bounding set (root mode: all but the eight capabilities of programs), so that no program can regain
// what execd holds, then gives up CAP_SETPCAP itself. Programs inherit the bounding set; nothing is left to do for each.
Result<> shed_privileges(bool root_mode);

// Files execd makes belong to the sandbox's own user, and links of that user in /tmp are followed
// (fs.protected_symlinks looks at who follows). Its capabilities and its uid for signals and ptrace stay what they are.
Result<> own_files_as(unsigned uid, unsigned gid);

}  // namespace osb::execd
