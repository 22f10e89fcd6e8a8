// A mount that a helper process of the launcher made and hands over a socket.
#pragma once

namespace osb::enter {

// The mount, or -1 with errno. Waits at most ten seconds.
int receive_mount(int socket);

}  // namespace osb::enter
