// The connection to opensandbox-launch: starts it when it is not there, asks, waits with a deadline, reconnects.
#pragma once
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "async/task.h"
#include "async/task_group.h"
#include "base/fd.h"
#include "base/result.h"
#include "model/launch_wire.h"

namespace osb::runtime {

struct LaunchOptions {
  std::string instance;
  std::string run_dir;  // of the instance
  std::string ranges_dir;
  std::string data_dir;
  std::string launch_path;
  std::string execd_path;
  bool private_instance = false;
  std::uint32_t parts = 8;  // namespaces it keeps ready
  bool confines = false;    // the program is opensandbox-confine, which needs no privilege and speaks the same language
  std::string workspace;    // of that one: a directory of the host that every sandbox has as /workspace
  std::chrono::milliseconds return_patience = std::chrono::seconds(5);  // how long a question waits for a launcher that is away
};

struct LaunchAnswer {
  std::string bytes;
  Fd descriptor;
};

class LaunchClient {
 public:
  using EventHandler = std::function<void(const wire::ExitedEvent&)>;
  using ReconnectHandler = std::function<Task<void>()>;

  LaunchClient(asio::io_context& io, LaunchOptions options);
  ~LaunchClient();

  // Connects, starting the launcher first when nobody listens.
  Task<Result<>> start();
  Task<void> stop();
  void on_event(EventHandler handler) { event_ = std::move(handler); }
  // Called after a lost launcher was replaced: what it held may be gone.
  void on_reconnect(ReconnectHandler handler) { reconnected_ = std::move(handler); }

  // `message` begins with a wire::Head; its seq is set here. A launcher that is away is waited for a few seconds, one whose socket is full
  // until the deadline. Errors: unavailable (there is none, or it was lost before it answered), timeout.
  Task<Result<LaunchAnswer>> ask(std::string message, int descriptor, std::chrono::steady_clock::duration deadline);
  // Sends what needs no answer; one that comes is not looked at. The launcher reads it even if we are killed the next moment.
  Result<> tell(std::string message, int descriptor);

 private:
  Result<std::uint64_t> send(std::string& message, int descriptor);
  Task<Result<std::uint64_t>> send_when_possible(std::string& message, int descriptor, Timer::time_point until);
  Task<void> wait_for_return(Timer::time_point until);
  void announce_return();
  struct Waiter {
    explicit Waiter(Executor executor) : done(executor, Timer::time_point::max()) {}
    Timer done;
    bool answered = false;
    bool lost = false;  // with the connection; there may be a new one by the time anybody looks
    LaunchAnswer answer;
  };
  using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

  Result<> connect();
  Task<Result<>> spawn();
  Task<Result<>> connect_or_spawn();
  Task<void> read_loop();
  Result<> read_ready();
  void take(std::string bytes, Fd descriptor);
  void fail_waiters();

  asio::io_context& io_;
  LaunchOptions options_;
  std::unique_ptr<Descriptor> socket_;
  std::map<std::uint64_t, Waiter*> waiters_;
  std::set<Timer*> without_launcher_;  // of those who wait for its return
  std::uint64_t next_seq_ = 1;
  bool stopping_ = false;
  EventHandler event_;
  ReconnectHandler reconnected_;
  TaskGroup tasks_;
};

template <class Message>
std::string bytes_of(const Message& message, std::size_t size = sizeof(Message)) {
  return std::string(reinterpret_cast<const char*>(&message), size);
}

// The fixed-layout reply in an answer; a reply shorter than it must be is a broken launcher.
template <class Reply>
Result<Reply> reply_in(const LaunchAnswer& answer) {
  if (answer.bytes.size() < sizeof(Reply)) return Error(Errc::internal, "short reply from the launcher");
  Reply reply;
  std::memcpy(&reply, answer.bytes.data(), sizeof reply);
  return reply;
}

}  // namespace osb::runtime
