#include <gtest/gtest.h>

#include <stdexcept>

#include "async/deadline.h"
#include "async/task_group.h"

namespace osb {
namespace {

using namespace std::chrono_literals;

// Runs one task on a fresh loop to its end.
template <class T>
std::optional<T> run(Task<T> task) {
  asio::io_context io(1);
  std::optional<T> out;
  asio::co_spawn(io, std::move(task), [&out](std::exception_ptr e, T value) {
    if (!e) out = std::move(value);
  });
  io.run();
  return out;
}

Task<Result<int>> answer_after(std::chrono::milliseconds wait, bool& ended) {
  struct Mark {
    bool& flag;
    ~Mark() { flag = true; }
  } mark{ended};
  co_await sleep_for(wait);
  co_await yield_now();
  co_return 42;
}

Task<Result<int>> throw_at_once() {
  co_await yield_now();
  throw std::runtime_error("broken");
}

Task<std::string> outcome(std::chrono::milliseconds limit, std::chrono::milliseconds wait) {
  bool ended = false;
  auto result = co_await with_deadline<int>(limit, answer_after(wait, ended));
  EXPECT_TRUE(ended);
  co_return result ? "value" : result.error().kind() == Errc::timeout ? "timeout" : "other";
}

TEST(WithDeadline, GivesTheResultOfQuickWork) { EXPECT_EQ(run(outcome(10s, 0ms)), "value"); }

TEST(WithDeadline, EndsSlowWorkBeforeItReturns) { EXPECT_EQ(run(outcome(1ms, 1h)), "timeout"); }

Task<std::string> rethrown() {
  std::string what;
  try {
    auto result = co_await with_deadline<int>(10s, throw_at_once());
    what = result ? "value" : "error";
  } catch (const std::runtime_error& e) {
    what = e.what();
  }
  co_return what;
}

TEST(WithDeadline, PassesExceptionsOn) { EXPECT_EQ(run(rethrown()), "broken"); }

Task<void> hold_with_deadline(bool& ended) {
  auto result = co_await with_deadline<int>(1h, answer_after(1h, ended));
  (void)result;
}

Task<bool> cancel_from_outside() {
  auto executor = co_await asio::this_coro::executor;
  TaskGroup group(executor);
  bool ended = false;
  group.spawn("holder", hold_with_deadline(ended));
  co_await yield_now();
  co_await yield_now();
  EXPECT_FALSE(ended);
  co_await group.stop();
  co_return ended;
}

TEST(WithDeadline, IsCancelledWithItsCaller) { EXPECT_EQ(run(cancel_from_outside()), true); }

Task<void> sleep_long() { co_await sleep_for(1h); }
Task<void> sleep_short() { co_await sleep_for(1ms); }

Task<bool> wait_for_the_last() {
  auto executor = co_await asio::this_coro::executor;
  TaskGroup group(executor);
  group.spawn("short", sleep_short());
  bool idle = co_await group.wait_idle(10s);
  EXPECT_TRUE(idle);
  group.spawn("long", sleep_long());
  idle = co_await group.wait_idle(5ms);
  EXPECT_FALSE(idle);
  EXPECT_EQ(group.size(), 1u);
  co_await group.stop();
  co_return group.size() == 0;
}

TEST(TaskGroup, WaitsForTheLastTaskAndStopsTheRest) { EXPECT_EQ(run(wait_for_the_last()), true); }

Task<void> fail() {
  co_await yield_now();
  throw std::runtime_error("a task broke");
}

Task<bool> outlive_failures() {
  auto executor = co_await asio::this_coro::executor;
  TaskGroup group(executor);
  group.spawn("fails", fail());
  bool idle = co_await group.wait_idle(10s);
  co_return idle;
}

TEST(TaskGroup, OutlivesATaskThatThrows) { EXPECT_EQ(run(outlive_failures()), true); }

}  // namespace
}  // namespace osb
