#include "launch/clients.h"

#include <utility>
#include <vector>

namespace osb::launch {
namespace {

constexpr std::size_t kMost = 16;
constexpr int kMessagesPerTurn = 64;

}  // namespace

void Clients::accept(Fd socket, unsigned allowed_uid) {
  if (!socket || channels_.size() >= kMost || !peer_is_allowed(socket.get(), allowed_uid)) return;
  auto number = next_++;
  int fd = socket.get();
  channels_.emplace(number, Channel(std::move(socket)));
  if (auto watched = owner_.watch_client(fd, number); !watched) channels_.erase(number);
}

void Clients::read(std::uint64_t client) {
  static Received message;  // large; one thread uses it, one message at a time
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    auto found = channels_.find(client);
    if (found == channels_.end()) return;
    if (found->second.is_behind()) return catch_up(client);
    auto got = found->second.receive(message);
    if (!got) return drop(client);
    if (!*got) return;
    owner_.dispatch(client, message);
  }
}

// Either what waits goes on its way, or we are told when there is room for it.
void Clients::catch_up(std::uint64_t client) {
  if (auto sent = channels_.find(client)->second.catch_up(epoll_.get()); !sent) drop(client);
}

void Clients::drop(std::uint64_t client) {
  auto found = channels_.find(client);
  if (found == channels_.end()) return;
  owner_.unwatch(found->second.fd());
  channels_.erase(found);
  owner_.on_client_gone(client);
}

void Clients::reply(const Pending& to, const void* message, std::size_t size, int descriptor) {
  auto found = channels_.find(to.client);
  if (found == channels_.end()) return;
  if (auto sent = found->second.send(message, size, descriptor); !sent) return drop(to.client);
  if (found->second.is_behind()) catch_up(to.client);
}

void Clients::reply_status(const Pending& to, wire::Op op, int sys, std::string_view detail, int descriptor) {
  wire::StatusReply message;
  message.head.op = op;
  message.head.seq = to.seq;
  message.sys = sys;
  detail.copy(message.detail, sizeof message.detail - 1);
  reply(to, &message, sizeof message, descriptor);
}

void Clients::broadcast(const void* message, std::size_t size) {
  std::vector<std::uint64_t> all;
  for (const auto& [number, channel] : channels_) all.push_back(number);
  for (auto number : all) reply({number, 0}, message, size);
}

int Clients::socket_of(std::uint64_t client) const {
  auto found = channels_.find(client);
  return found == channels_.end() ? -1 : found->second.fd();
}

}  // namespace osb::launch
