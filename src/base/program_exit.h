// How our own programs tell whoever started them that there is no point in trying again.
#pragma once

namespace osb {

// The host lacks something that the program does not run without, and that no restart of it brings.
inline constexpr int kExitNeverHere = 69;  // EX_UNAVAILABLE of sysexits.h

}  // namespace osb
