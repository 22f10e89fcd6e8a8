// execd's own capabilities in a native sandbox: given up as far as its programs will never need them.
#pragma once
#include "base/result.h"

namespace osb::execd {

// Empties the bounding set (root mode: all but the eight capabilities of programs), so that no program can regain
// what execd holds, then gives up CAP_SETPCAP itself. Programs inherit the bounding set; nothing is left to do for each.
Result<> shed_privileges(bool root_mode);

}  // namespace osb::execd
