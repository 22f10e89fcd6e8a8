// The stem: execd's program, started once by the launcher, which divides into the first process of each sandbox.
//
// A division costs a copy of a few pages where an exec costs half a millisecond. The stem is not a copy of the launcher and holds nothing
// of any sandbox: a plan comes as a message, only the new process reads it, and the stem wipes it.
#pragma once

namespace osb::execd {

// Never returns: serves until the launcher's end of the socket closes; each new process goes on as execd.
[[noreturn]] void run_stem(int socket);

}  // namespace osb::execd
