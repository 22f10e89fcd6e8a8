// For tests only: an event loop that is turned until a coroutine has its answer. Servers live on the same loop.
#pragma once
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <optional>

#include "async/task.h"

namespace osb::proxy {

class TestLoop {
 public:
  template <class T>
  T run(Task<T> task) {
    std::optional<T> out;
    run(keep(std::move(task), out));
    if (!out) throw std::runtime_error("the task gave nothing");
    return *std::move(out);
  }
  void run(Task<void> task) {
    bool done = false;
    asio::co_spawn(io, std::move(task), [&](std::exception_ptr failed) {
      done = true;
      if (failed) std::rethrow_exception(failed);
    });
    turn_until([&] { return done; });
  }
  template <class Condition>
  void turn_until(Condition reached) {
    io.restart();
    while (!reached())
      if (io.run_one_for(std::chrono::seconds(20)) == 0) throw std::runtime_error("nothing happens any more");
  }

  asio::io_context io{1};

 private:
  template <class T>
  static Task<void> keep(Task<T> task, std::optional<T>& out) {
    out = co_await std::move(task);
  }
};

}  // namespace osb::proxy
