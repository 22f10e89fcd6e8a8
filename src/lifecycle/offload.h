// offload: blocking work on a thread of a pool, awaited on the I/O thread.
#pragma once
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "async/task.h"

namespace osb::lifecycle {

template <class T>
struct Offloaded {
  explicit Offloaded(Executor executor) : done(executor, Timer::time_point::max()) {}
  std::optional<T> value;
  Timer done;
};

// A caller that is cancelled stops waiting; the work goes on, so what it refers to must outlive the pool.
template <class T, class Work>
Task<T> offload(asio::thread_pool& pool, Work work) {
  auto executor = co_await asio::this_coro::executor;
  auto shared = std::make_shared<Offloaded<T>>(executor);
  asio::post(pool, [shared, executor, work = std::move(work)]() mutable {
    auto value = work();
    asio::post(executor, [shared, value = std::move(value)]() mutable {
      shared->value.emplace(std::move(value));
      shared->done.cancel();
    });
  });
  while (!shared->value) co_await shared->done.async_wait(nothrow);
  co_return *std::move(shared->value);
}

}  // namespace osb::lifecycle
