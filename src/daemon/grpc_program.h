// opensandbox-grpc under the care of serve: started with a listening socket that serve keeps, started again when it ends, and
// gone when serve is gone, however that came about (docs/adr/0009).
#pragma once
#include <sys/types.h>

#include <memory>
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

 private:
  struct Process {
    pid_t pid = -1;
    Fd pidfd;
    Fd lifeline;  // our end of its standard input: closing it ends the program
  };
  Result<Process> spawn() const;
  Task<void> keep_alive(Process process);
  Task<void> wait_exit(Process& process);

  asio::io_context& io_;
  GrpcConfig config_;
  std::string program_;
  std::string relay_;
  Fd listener_;
  TaskGroup tasks_;
};

}  // namespace osb::daemon
