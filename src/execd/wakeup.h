// Wakeup: one coroutine waits, somebody wakes it. The waiter goes on inside wake(), before that returns: no turn of the event loop
// lies between the end of a program and the answer that tells of it.
#pragma once
#include <boost/asio/async_result.hpp>
#include <optional>

#include "async/task.h"

namespace osb::execd {

class Wakeup {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Wakeup(Executor executor) : timer_(executor) {}
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  // Returns when somebody wakes it, or after `patience`. One waiter at a time; it outlives the wait.
  Task<void> wait(Clock::duration patience);
  void wake();

 private:
  using Token = asio::use_awaitable_t<Executor>;
  using Waiter = asio::async_result<Token, void()>::handler_type;

  void go_on();

  Timer timer_;
  std::optional<Waiter> waiter_;
};

}  // namespace osb::execd
