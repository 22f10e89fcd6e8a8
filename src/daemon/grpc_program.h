// opensandbox-grpc under the care of serve: started with a listening socket that serve keeps, started again when it ends, and
// gone when serve is gone, however that came about (docs/adr/0009). One that says that it can never run on this host is not started
// again: its port closes, and everything else goes on.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "base/fd.h"
#include "base/result.h"
#include "daemon/config.h"

namespace osb::daemon {

class GrpcProgram {
 public:
  // `program` is its path, `relay` the socket on which serve takes the calls.
  GrpcProgram(asio::io_context& io, GrpcConfig config, std::string program, std::string relay);

  // The port it listens on. Errors: the address is taken, or the program cannot be started.
  Result<std::uint16_t> start();
  Task<void> stop();
  bool has_given_up() const { return given_up_; }

 private:
  using Pidfd = asio::posix::basic_stream_descriptor<Executor>;
  struct Process {
    std::shared_ptr<Pidfd> pidfd;  // shared with a timer that may come after the one who waits has gone
    Fd lifeline;                   // our end of its standard input: closing it ends the program
  };
  Result<Process> spawn();
  Result<std::shared_ptr<Pidfd>> watch(pid_t child);
  Task<siginfo_t> wait_exit(Process process);
  Task<std::optional<Process>> spawn_after(std::chrono::steady_clock::duration& pause);
  Task<void> keep_alive(Process process);

  asio::io_context& io_;
  GrpcConfig config_;
  std::string program_;
  std::string relay_;
  Fd listener_;
  bool given_up_ = false;
  TaskGroup tasks_;
};

}  // namespace osb::daemon
