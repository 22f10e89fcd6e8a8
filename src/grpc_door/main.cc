// opensandbox-grpc: gRPC for the session service, in a process of its own (docs/adr/0009). Started by opensandbox-serve.
//
// usage: opensandbox-grpc --relay SOCKET --connections N --streams N --calls N
// Descriptor 0 is a pipe that serve holds: its end is the end of this program. Descriptor 3 is the listening socket.
#include <signal.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "base/program_exit.h"
#include "base/text.h"
#include "grpc_door/confine.h"
#include "grpc_door/door.h"

namespace {

using namespace osb;

constexpr int kListener = 3;

int fail(std::string_view why, std::string_view hint = {}) {
  std::fprintf(stderr, "opensandbox-grpc: %.*s\n", static_cast<int>(why.size()), why.data());
  if (!hint.empty()) std::fprintf(stderr, "hint: %.*s\n", static_cast<int>(hint.size()), hint.data());
  return 2;
}

std::optional<grpc_door::Options> parse(int argc, char** argv) {
  grpc_door::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string_view name = argv[i], value = argv[i + 1];
    if (name == "--relay") {
      options.relay = value;
      continue;
    }
    auto number = parse_int<std::uint32_t>(value);
    if (!number || *number == 0 || *number > 100'000) return std::nullopt;
    if (name == "--connections") {
      options.max_connections = *number;
    } else if (name == "--streams") {
      options.max_streams = static_cast<int>(*number);
    } else if (name == "--calls") {
      options.max_calls = *number;
    } else {
      return std::nullopt;
    }
  }
  if (options.relay.empty() || argc % 2 == 0) return std::nullopt;
  return options;
}

// Whatever becomes of serve, its end of the pipe closes.
Task<void> until_orphaned(asio::io_context& io) {
  asio::posix::basic_stream_descriptor<Executor> pipe(io.get_executor(), 0);
  char byte = 0;
  for (;;) {
    auto [failed, count] = co_await pipe.async_read_some(asio::buffer(&byte, 1), nothrow);
    if (failed || count == 0) break;
  }
}

Task<void> run(asio::io_context& io, grpc_door::Options options, int& status) {
  grpc_door::Door door(io, std::move(options));
  auto started = door.start();
  if (!started) {
    status = fail(started.error().what());
    co_return;
  }
  log::info("gRPC is served");
  co_await until_orphaned(io);
  // The library's own shutdown waits for clients; those of a server that is gone need no farewell.
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  auto options = parse(argc, argv);
  if (!options) return fail("it is started by opensandbox-serve (grpc.enabled)");
  ::signal(SIGPIPE, SIG_IGN);
  // A terminal's interrupt is for serve, which ends this program in its turn.
  ::signal(SIGINT, SIG_IGN);
  if (auto confined = grpc_door::confine(options->max_connections, options->max_calls); !confined) {
    int status = fail(confined.error().what(), confined.error().hint());
    return confined.error().kind() == Errc::unsupported ? kExitNeverHere : status;
  }
  options->listener = Fd(kListener);
  asio::io_context io(1);
  int status = 0;
  asio::co_spawn(io, run(io, *std::move(options), status), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
  return status;
}
