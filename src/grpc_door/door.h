// The gRPC server: the library's callback API in the middle, our front before it and the relay behind it.
#pragma once
#include <memory>
#include <string>

#include "async/task.h"
#include "base/fd.h"
#include "base/result.h"

namespace osb::grpc_door {

struct Options {
  Fd listener;
  std::string relay;  // socket of opensandbox-serve
  std::size_t max_connections = 256;
  int max_streams = 100;         // calls of one connection side by side
  std::size_t max_calls = 1024;  // of all connections
};

class Door {
 public:
  Door(asio::io_context& io, Options options);
  ~Door();
  Result<> start();  // for as long as the program runs

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace osb::grpc_door
