// Everybody who is connected to a launcher or a keeper, by number: who may come, what they ask, what waits for them.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "launch/channel.h"

namespace osb::launch {

struct Pending {  // a request that is answered, perhaps later
  std::uint64_t client = 0;
  std::uint64_t seq = 0;
};

class Clients {
 public:
  // Whose loop it is that waits for them.
  class Owner {
   public:
    virtual Result<> watch_client(int fd, std::uint64_t client) = 0;
    virtual void unwatch(int fd) = 0;
    virtual void dispatch(std::uint64_t client, Received& message) = 0;
    virtual void on_client_gone(std::uint64_t client) = 0;  // what was asked for by it is nobody's now

   protected:
    ~Owner() = default;
  };

  // `epoll` is the owner's, in which watch_client() registers them.
  Clients(Owner& owner, const Fd& epoll) : owner_(owner), epoll_(epoll) {}

  void accept(Fd socket, unsigned allowed_uid);  // root and that user may come, a few at a time; others are turned away
  void read(std::uint64_t client);               // dispatches what there is to read, as far as one turn goes
  void drop(std::uint64_t client);
  void reply(const Pending& to, const void* message, std::size_t size, int descriptor = -1);
  void reply_status(const Pending& to, wire::Op op, int sys, std::string_view detail = {}, int descriptor = -1);
  void broadcast(const void* message, std::size_t size);

  bool empty() const { return channels_.empty(); }
  bool had_any() const { return next_ > 1; }
  int socket_of(std::uint64_t client) const;  // -1: it has gone

 private:
  void catch_up(std::uint64_t client);

  Owner& owner_;
  const Fd& epoll_;
  std::map<std::uint64_t, Channel> channels_;
  std::uint64_t next_ = 1;
};

}  // namespace osb::launch
