#include "lifecycle/boot_timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace osb::lifecycle {

Result<> BootTimer::open() {
  int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) return Error::from_errno("timerfd_create", errno);
  boost::system::error_code ec;
  file_.assign(fd, ec);
  if (!ec) return Ok{};
  ::close(fd);
  return Error(Errc::internal, "watch timer: " + ec.message());
}

void BootTimer::arm(std::optional<std::int64_t> boot_nanos) {
  if (!boot_nanos || !file_.is_open()) return;
  // A zero would disarm the timer; a moment that has passed is armed as the first nanosecond instead.
  auto moment = std::max<std::int64_t>(*boot_nanos, 1);
  if (armed_ != 0 && armed_ <= moment) return;
  itimerspec when{};
  when.it_value.tv_sec = moment / 1'000'000'000;
  when.it_value.tv_nsec = moment % 1'000'000'000;
  if (::timerfd_settime(file_.native_handle(), TFD_TIMER_ABSTIME, &when, nullptr) == 0) armed_ = moment;
}

Task<bool> BootTimer::wait() {
  auto [ec] = co_await file_.async_wait(asio::posix::descriptor_base::wait_read, nothrow);
  if (ec) co_return false;
  std::uint64_t fired = 0;
  [[maybe_unused]] auto n = ::read(file_.native_handle(), &fired, sizeof fired);
  armed_ = 0;
  co_return true;
}

}  // namespace osb::lifecycle
