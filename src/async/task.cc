#include "async/task.h"

#include <boost/asio/post.hpp>

namespace osb {

Task<void> sleep_for(std::chrono::steady_clock::duration d) {
  auto executor = co_await asio::this_coro::executor;
  Timer timer(executor, d);
  co_await timer.async_wait(nothrow);
}

Task<void> yield_now() {
  auto executor = co_await asio::this_coro::executor;
  co_await asio::post(executor, nothrow);
}

}  // namespace osb
