// Whose program holds the other end of a TCP connection on this machine.
#pragma once
#include <cstdint>
#include <optional>

namespace osb::sys {

// The uid of the peer's socket, asked from the kernel (sock_diag). nullopt when the peer is not on this machine, has closed its
// socket, or the kernel does not say: whoever asks must then take it for a stranger.
std::optional<std::uint32_t> peer_owner(int connected_tcp_socket);

}  // namespace osb::sys
