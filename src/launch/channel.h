// One connection of a client (serve, doctor): whole messages with descriptors over SOCK_SEQPACKET.
#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "model/launch_wire.h"

namespace osb::launch {

struct Received {
  alignas(8) char bytes[wire::kMaxMessage];
  std::size_t size = 0;
  Fd descriptor;  // at most one; others are closed unseen

  // A request of fixed layout, or nothing when there are fewer bytes than it takes.
  template <class Request>
  const Request* as() const {
    return size >= sizeof(Request) ? reinterpret_cast<const Request*>(bytes) : nullptr;
  }
};

// A create ends with its last layer, not with room for the most there can be. False: it is cut short.
bool read_create(const Received& message, wire::CreateRequest& into);

class Channel {
 public:
  explicit Channel(Fd socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.get(); }
  // false: nothing to read now. An error means the peer is gone or broke the rules; drop it.
  Result<bool> receive(Received& into);
  // What the peer has no room for waits here, in order; while something does, nothing more is read of it, so that its own questions
  // cannot fill this up. An error: it is gone, or has not read for so long that it has to be dropped.
  Result<> send(const void* message, std::size_t size, int descriptor = -1);
  Result<> send_waiting();
  // The same, and the registration in `epoll` then asks for room while there is none, for messages otherwise.
  Result<> catch_up(int epoll);
  bool is_behind() const { return !waiting_.empty(); }

 private:
  struct Message {
    std::string bytes;
    Fd descriptor;
  };
  Fd socket_;
  std::deque<Message> waiting_;
};

// Listens at `path` (0600); a stale file there is replaced.
Result<Fd> listen_seqpacket(const std::string& path);
// The socket of a sandbox's execd: `directory`/<id>.sock. It is given to `owner`; 0: it stays ours.
Result<Fd> listen_for_execd(const std::string& directory, const std::string& id, unsigned owner);
// The peer's uid when it may command the launcher: root or `allowed_uid`.
bool peer_is_allowed(int socket, unsigned allowed_uid);

}  // namespace osb::launch
