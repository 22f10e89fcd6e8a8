// TaskGroup: child coroutines that must not outlive their owner.
#pragma once
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <cassert>
#include <exception>
#include <list>
#include <string>

#include "async/task.h"

namespace osb {

// All calls happen on the I/O thread. Destroying a group that still runs something is a bug: co_await stop() first.
class TaskGroup {
 public:
  explicit TaskGroup(Executor executor) : executor_(executor), idle_(executor, Timer::time_point::max()) {}
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup() { assert(running_.empty() && "co_await stop() first"); }

  // An exception that leaves a task is logged with `name`; it never takes the process down.
  void spawn(std::string name, Task<void> task);
  // Cancels every task and waits until the last one has ended.
  Task<void> stop();
  // Waits until no task runs, at most for `limit`; true when none does.
  Task<bool> wait_idle(std::chrono::steady_clock::duration limit);
  std::size_t size() const { return running_.size(); }
  Executor executor() const { return executor_; }

 private:
  Executor executor_;
  Timer idle_;  // cancelled, which wakes its waiters, when the last task ends
  std::list<asio::cancellation_signal> running_;
};

}  // namespace osb
