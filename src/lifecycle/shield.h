// shield: work that must finish although its caller may be cancelled in the middle (a client that hangs up).
#pragma once
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "async/task.h"
#include "async/task_group.h"
#include "base/result.h"

namespace osb::lifecycle {

template <class T>
struct Shielded {
  explicit Shielded(Executor executor) : done(executor, Timer::time_point::max()) {}
  std::optional<Result<T>> value;
  Timer done;
};

template <class T>
Task<void> run_shielded(Task<Result<T>> work, std::shared_ptr<Shielded<T>> shared) {
  try {
    auto value = co_await std::move(work);
    shared->value.emplace(std::move(value));
  } catch (const std::exception& e) {  // cancelled by the owner of the group
    shared->value.emplace(Error(Errc::unavailable, std::string("interrupted: ") + e.what()));
  }
  shared->done.cancel();
}

// The work runs in `group`; cancelling the caller ends the waiting, not the work.
template <class T>
Task<Result<T>> shield(TaskGroup& group, std::string name, Task<Result<T>> work) {
  auto executor = co_await asio::this_coro::executor;
  auto shared = std::make_shared<Shielded<T>>(executor);
  group.spawn(std::move(name), run_shielded<T>(std::move(work), shared));
  while (!shared->value) co_await shared->done.async_wait(nothrow);
  co_return *std::move(shared->value);
}

}  // namespace osb::lifecycle
