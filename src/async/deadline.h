// with_deadline: a bound on how long any work may take.
#pragma once
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <memory>
#include <optional>

#include "async/task.h"
#include "base/result.h"

namespace osb {

namespace detail {
template <class T>
Task<void> deliver(Task<Result<T>> work, std::optional<Result<T>>& into) {
  auto result = co_await std::move(work);
  into.emplace(std::move(result));
}
}  // namespace detail

// The result of `work`, or Errc::timeout when it has none after `limit`. Work that is too slow is cancelled and has
// ended when this returns. Cancelling the caller cancels the work.
template <class T>
Task<Result<T>> with_deadline(std::chrono::steady_clock::duration limit, Task<Result<T>> work) {
  struct Watch {
    asio::cancellation_signal stop;
    bool expired = false;
  };
  auto executor = co_await asio::this_coro::executor;
  auto own = co_await asio::this_coro::cancellation_state;
  auto watch = std::make_shared<Watch>();
  Timer timer(executor, limit);
  timer.async_wait([watch](boost::system::error_code error) {
    if (error) return;
    watch->expired = true;
    watch->stop.emit(asio::cancellation_type::terminal);
  });
  // The work runs under its own signal, so the caller's is passed on by hand.
  auto slot = own.slot();
  if (slot.is_connected()) slot.assign([watch](asio::cancellation_type kind) { watch->stop.emit(kind); });
  std::optional<Result<T>> result;
  auto [failure] = co_await asio::co_spawn(executor, detail::deliver(std::move(work), result),
                                           asio::bind_cancellation_slot(watch->stop.slot(), nothrow));
  if (slot.is_connected()) slot.clear();
  if (watch->expired && (!result || !*result)) co_return Error(Errc::timeout, "it took too long");
  if (failure) std::rethrow_exception(failure);
  co_return std::move(*result);
}

}  // namespace osb
