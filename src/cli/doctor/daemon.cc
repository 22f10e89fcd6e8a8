#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/text.h"
#include "cli/api.h"
#include "cli/doctor/probes.h"
#include "model/launch_wire.h"

namespace osb::cli {
namespace {

constexpr const char* kPart = "Daemon";

Finding serve(const daemon::Config& config) {
  auto socket = cat(config.instance_dir(), "/api.sock");
  Api api(Address{true, socket, 0}, {});
  auto health = api.call("GET", "/health", {}, {}, Millis(3000));
  if (health) return {kPart, "serve", Verdict::ok, false, cat("answers on ", socket), {}};
  bool absent = health.error().sys() == ENOENT || health.error().sys() == ECONNREFUSED;
  if (absent)
    return {kPart,
            "serve",
            Verdict::weak,
            false,
            "does not run; `run` starts a private one each time, which is slower",
            "opensandbox daemon start"};
  return {kPart, "serve", Verdict::weak, false, cat("does not answer: ", health.error().what()), "opensandbox daemon status"};
}

Result<wire::HelloReply> greet(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  timeval patience{2, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    return Error::from_errno("connect", errno, Errc::unavailable);
  wire::HelloRequest hello;
  hello.head.seq = 1;
  wire::HelloReply reply;
  if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof hello))
    return Error::from_errno("send", errno);
  if (::recv(socket.get(), &reply, sizeof reply, 0) != static_cast<ssize_t>(sizeof reply))
    return Error::from_errno("no answer", errno == 0 ? EPROTO : errno);
  return reply;
}

Finding launch(const daemon::Config& config) {
  auto path = cat(config.instance_dir(), "/launch.sock");
  auto reply = greet(path);
  if (reply)
    return {
        kPart, "launch", Verdict::ok, false, cat("pid ", reply->pid, " holds ", reply->live, reply->live == 1 ? " sandbox" : " sandboxes"),
        {}};
  bool absent = reply.error().sys() == ENOENT || reply.error().sys() == ECONNREFUSED;
  if (absent) return {kPart, "launch", Verdict::ok, false, "does not run; serve starts it", {}};
  return {kPart,
          "launch",
          Verdict::weak,
          false,
          cat("does not answer: ", reply.error().what()),
          "opensandbox daemon stop; opensandbox daemon start"};
}

// Only what a running daemon found out: whether the program can run here is for the program to say.
std::optional<Finding> grpc(const daemon::Config& config) {
  Api api(Address{true, cat(config.instance_dir(), "/api.sock"), 0}, {});
  auto reply = config.grpc.enabled ? api.call("GET", "/osb/v1/daemon", {}, {}, Millis(3000)) : Result<Reply>(Error(Errc::unavailable, ""));
  auto told = reply ? parse_object(reply->body) : Result<boost::json::object>(reply.error());
  const auto* error = told ? told->if_contains("grpcError") : nullptr;
  if (error == nullptr || !error->is_string()) return std::nullopt;
  return Finding{kPart,
                 "grpc",
                 Verdict::weak,
                 false,
                 std::string(error->get_string()),
                 "boot with lsm=landlock,... (Linux 5.13 or later), or set grpc.enabled: false"};
}

}  // namespace

std::vector<Finding> probe_daemon(const daemon::Config& config) {
  std::vector<Finding> findings{serve(config), launch(config)};
  if (auto found = grpc(config)) findings.push_back(*std::move(found));
  return findings;
}

}  // namespace osb::cli
