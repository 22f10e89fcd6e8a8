#include "api/rpc/call.h"
#include "async/deadline.h"
#include "async/task_group.h"

namespace osb::api::rpc {
namespace {

struct Watch {
  Watch(const Method& of, Call& one) : method(of), call(one) {}
  void leave() {
    call.left = true;
    if (!method.finishes) stop.emit(asio::cancellation_type::terminal);
  }

  const Method& method;
  Call& call;
  asio::cancellation_signal stop;
  bool gone = false;
  bool expired = false;
};

Task<void> end_when_gone(Task<void> gone, std::shared_ptr<Watch> watch) {
  co_await std::move(gone);
  watch->gone = true;
  watch->leave();
}

}  // namespace

Task<Result<>> attended(const Method& method, Call& call, Task<void> gone, std::chrono::steady_clock::duration limit) {
  // Our own cancellation is passed on to the work; the waits below go on until it has ended.
  co_await asio::this_coro::throw_if_cancelled(false);
  auto executor = co_await asio::this_coro::executor;
  auto own = co_await asio::this_coro::cancellation_state;
  auto watch = std::make_shared<Watch>(method, call);
  auto slot = own.slot();
  if (slot.is_connected()) slot.assign([watch](asio::cancellation_type kind) { watch->stop.emit(kind); });
  Timer timer(executor, limit);
  timer.async_wait([watch](boost::system::error_code error) {
    if (error) return;
    watch->expired = true;
    watch->leave();
  });
  TaskGroup lookout(executor);
  lookout.spawn("watch the caller", end_when_gone(std::move(gone), watch));
  std::optional<Result<>> result;
  auto [failure] = co_await asio::co_spawn(executor, osb::detail::deliver(method.run(call), result),
                                           asio::bind_cancellation_slot(watch->stop.slot(), nothrow));
  if (slot.is_connected()) slot.clear();
  timer.cancel();
  bool gone_first = watch->gone;  // what is stopped below looks the same
  co_await lookout.stop();
  if (result && *result) co_return Ok{};
  if (gone_first) co_return Error(Errc::unavailable, "the caller has gone").with_code("GENERAL::CANCELLED");
  if (watch->expired) co_return Error(Errc::timeout, "The call took longer than it may.").with_code("GENERAL::DEADLINE");
  if (failure) std::rethrow_exception(failure);
  co_return std::move(*result);
}

}  // namespace osb::api::rpc
