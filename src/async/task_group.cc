#include "async/task_group.h"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "base/log.h"

namespace osb {
namespace {

// Empty for a task that ended because it was cancelled: that is what stop() asked for.
std::string describe(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const boost::system::system_error& known) {
    return known.code() == asio::error::operation_aborted ? std::string() : std::string(known.what());
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "unknown exception";
  }
}

}  // namespace

void TaskGroup::spawn(std::string name, Task<void> task) {
  auto self = running_.emplace(running_.end());
  auto finished = [this, self, name = std::move(name)](std::exception_ptr e) {
    auto failure = e ? describe(e) : std::string();
    if (!failure.empty()) log::error("task failed", {{"task", name}, {"error", failure}});
    running_.erase(self);
    if (running_.empty()) idle_.cancel();
  };
  asio::co_spawn(executor_, std::move(task), asio::bind_cancellation_slot(self->slot(), std::move(finished)));
}

Task<void> TaskGroup::stop() {
  for (auto& signal : running_) signal.emit(asio::cancellation_type::terminal);
  while (!running_.empty()) co_await idle_.async_wait(nothrow);
}

Task<bool> TaskGroup::wait_idle(std::chrono::steady_clock::duration limit) {
  auto until = std::chrono::steady_clock::now() + limit;
  while (!running_.empty() && std::chrono::steady_clock::now() < until) {
    // The shared timer is the clock while we wait; others who wait on it look again when it moves.
    idle_.expires_at(until);
    co_await idle_.async_wait(nothrow);
  }
  idle_.expires_at(Timer::time_point::max());
  co_return running_.empty();
}

}  // namespace osb
