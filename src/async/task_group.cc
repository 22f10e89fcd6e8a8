#include "async/task_group.h"

#include "base/log.h"

namespace osb {
namespace {

std::string describe(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
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
    if (e) log::error("task failed", {{"task", name}, {"error", describe(e)}});
    running_.erase(self);
    if (running_.empty()) idle_.cancel();
  };
  asio::co_spawn(executor_, std::move(task), asio::bind_cancellation_slot(self->slot(), std::move(finished)));
}

Task<void> TaskGroup::stop() {
  for (auto& signal : running_) signal.emit(asio::cancellation_type::terminal);
  while (!running_.empty()) co_await idle_.async_wait(nothrow);
}

}  // namespace osb
