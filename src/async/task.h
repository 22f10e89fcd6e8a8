// Our Asio idioms: Task<T>, results instead of exceptions, deadlines, blocking-free waits.
//
// One I/O thread runs everything, so no strand and no lock is needed; a Task never blocks.
// co_await stands alone: `auto x = co_await f(std::move(y));` and nothing cleverer.
#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace osb {

namespace asio = boost::asio;

using Executor = asio::io_context::executor_type;
template <class T>
using Task = asio::awaitable<T, Executor>;

inline constexpr asio::as_tuple_t<asio::use_awaitable_t<Executor>> nothrow{};

using Timer = asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;

Task<void> sleep_for(std::chrono::steady_clock::duration d);
// Lets everything else that is ready run first; for loops that might never wait otherwise.
Task<void> yield_now();

}  // namespace osb
