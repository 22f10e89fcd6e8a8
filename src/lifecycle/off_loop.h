// off_loop: work that would block the loop (a disk that flushes, a tree that is removed), done on a worker thread.
#pragma once
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "async/task.h"

namespace osb::lifecycle {

template <class T>
struct OffLoop {
  explicit OffLoop(Executor executor) : done(executor, Timer::time_point::max()) {}
  std::optional<T> value;
  Timer done;
};

// `work` owns everything it touches, or what it touches outlives the pool: a cancelled caller does not stop it.
template <class Work>
Task<std::invoke_result_t<Work&>> off_loop(asio::thread_pool& pool, Work work) {
  using T = std::invoke_result_t<Work&>;
  auto executor = co_await asio::this_coro::executor;
  auto shared = std::make_shared<OffLoop<T>>(executor);
  asio::post(pool, [shared, executor, work = std::move(work)]() mutable {
    auto value = work();
    asio::post(executor, [shared, value = std::move(value)]() mutable {
      shared->value.emplace(std::move(value));
      shared->done.cancel();
    });
  });
  while (!shared->value) co_await shared->done.async_wait(nothrow);
  co_return std::move(*shared->value);
}

}  // namespace osb::lifecycle
