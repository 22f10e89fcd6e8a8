// BootTimer: one wait for one moment of CLOCK_BOOTTIME. It counts suspend and knows no wall-clock jumps, and while
// nothing is armed it costs no wake-up. An armed moment is kept until it comes, so that sandboxes which come and go cost no call
// to the kernel: whoever waits looks what is due and arms again.
#pragma once
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdint>
#include <optional>

#include "async/task.h"
#include "base/result.h"

namespace osb::lifecycle {

class BootTimer {
 public:
  explicit BootTimer(Executor executor) : file_(executor) {}
  Result<> open();
  // wait() ends at this moment or at an earlier one that was armed before. A moment in the past fires at once; nullopt = no moment.
  void arm(std::optional<std::int64_t> boot_nanos);
  // Ends when an armed moment is reached, and nothing is armed then, or with false when the task is cancelled.
  Task<bool> wait();

 private:
  asio::posix::basic_stream_descriptor<Executor> file_;
  std::int64_t armed_ = 0;  // 0 = nothing
};

}  // namespace osb::lifecycle
