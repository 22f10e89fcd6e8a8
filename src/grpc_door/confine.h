// What parses HTTP/2 of anybody needs no file, no program, no outgoing connection, no capability and no end of memory.
#pragma once
#include <cstddef>

#include "base/result.h"

namespace osb::grpc_door {

// Before the first thread. The sockets that are open stay, and unix sockets can still be connected to. Where the kernel has no
// Landlock the rest holds, and the log says so.
Result<> confine(std::size_t connections, std::size_t calls);

}  // namespace osb::grpc_door
