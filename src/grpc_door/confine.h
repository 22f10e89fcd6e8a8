// What parses HTTP/2 of anybody needs no file, no program, no outgoing connection, no capability and no end of memory.
#pragma once
#include <cstddef>

#include "base/result.h"

namespace osb::grpc_door {

// Before the first thread. The sockets that are open stay, and unix sockets can still be connected to. All of it or an error, after
// which the program must end: what is refused here is all that stands between a parser and the host. A kernel without Landlock
// (Linux 5.13) is such an error, of kind unsupported; outgoing TCP connections are refused from Landlock ABI 4 (Linux 6.7) on.
Result<> confine(std::size_t connections, std::size_t calls);

}  // namespace osb::grpc_door
