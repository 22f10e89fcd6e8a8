// The TCP side: takes connections, as many as may be, and passes their bytes to the library through the gate.
//
// The library gets one end of a pair of sockets for each and never sees the listener: running out of descriptors, clients that
// connect and say nothing and floods of frames end here.
#pragma once
#include <chrono>
#include <functional>

#include "async/task_group.h"
#include "base/fd.h"
#include "http/socket.h"

namespace osb::grpc_door {

struct FrontLimits {
  std::size_t connections = 256;
  std::chrono::seconds preface{10};  // to say the first 24 bytes
};

class Front {
 public:
  // `adopt` gives the library its end; called on the I/O thread.
  Front(asio::io_context& io, Fd listener, FrontLimits limits, std::function<void(Fd)> adopt);
  void start();  // for as long as the program runs

 private:
  Task<void> accept_loop();
  Task<void> serve(Fd fd);

  asio::io_context& io_;
  http::Socket listener_;
  FrontLimits limits_;
  std::function<void(Fd)> adopt_;
  TaskGroup acceptor_;
  TaskGroup connections_;
};

}  // namespace osb::grpc_door
