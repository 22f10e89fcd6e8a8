// How a kernel comes up: its process, where it listens, the connections to it.
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/text.h"
#include "execd/collector.h"
#include "execd/kernels/kernel.h"
#include "execd/run_request.h"
#include "execd/sandbox.h"

namespace osb::execd {
namespace {

constexpr auto kTryAgain = std::chrono::milliseconds(10);

// Found free by asking the kernel for them; held together until all are known, so that they differ.
bool find_free_ports(int (&ports)[5]) {
  Fd held[5];
  for (int i = 0; i < 5; ++i) {
    held[i] = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (!held[i] || ::bind(held[i].get(), raw, size) != 0 || ::getsockname(held[i].get(), raw, &size) != 0) return false;
    ports[i] = ntohs(address.sin_port);
  }
  return true;
}

Task<void> collect_words(std::shared_ptr<Kernel> kernel, std::shared_ptr<Process> process, Ring& ring) {
  co_await collect_into(std::move(process), ring);
  [[maybe_unused]] auto alive_until_now = std::move(kernel);
}

void replace(std::string& word, std::string_view mark, std::string_view with) {
  if (auto at = word.find(mark); at != std::string::npos) word.replace(at, mark.size(), with);
}

RunRequest request_for(const Kernelspec& spec, const std::string& cwd) {
  RunRequest request;
  request.argv = spec.argv;
  request.cwd = cwd;
  request.env = spec.env;
  return request;
}

}  // namespace

Task<Result<>> Kernel::launch(Clock::time_point until) {
  auto made = sandbox_.kernels.folder().make(sandbox_.setup);
  if (!made) co_return made;
  place_ = sandbox_.kernels.folder().new_place();
  if (wish_.spec.is_ipykernel()) co_return co_await launch_forked(until);
  co_return launch_program();
}

Task<Result<>> Kernel::launch_forked(Clock::time_point until) {
  CO_TRY(StartRequest start, prepare(sandbox_.setup, request_for(wish_.spec, wish_.cwd)));
  env_ = start.env;
  ForkServer::Wish wish{wish_.spec.argv.front(), place_, session_.key, start.cwd, start.variables().whole()};
  CO_TRY(forked_, co_await sandbox_.kernels.server().fork(std::move(wish), until));
  co_return Ok{};
}

bool Kernel::is_current(const Kernelspec& spec) const {
  auto start = prepare(sandbox_.setup, request_for(spec, wish_.cwd));
  return start && spec.argv == wish_.spec.argv && start->env == env_;
}

Result<std::string> Kernel::connection_text() {
  bool ipc = wish_.spec.speaks_ipc();
  if (!ipc && !find_free_ports(ports_)) return Error(Errc::unavailable, "no free TCP ports for the kernel");
  return cat(R"({"transport":")", ipc ? "ipc" : "tcp", R"(","ip":)", json_string(ipc ? place_ : "127.0.0.1"), R"(,"key":")", session_.key,
             R"(","signature_scheme":"hmac-sha256","shell_port":)", ports_[0], R"(,"iopub_port":)", ports_[1], R"(,"stdin_port":)",
             ports_[2], R"(,"control_port":)", ports_[3], R"(,"hb_port":)", ports_[4], R"(,"kernel_name":)", json_string(wish_.spec.name),
             "}\n");
}

Result<> Kernel::launch_program() {
  TRY(std::string text, connection_text());
  CHECK_OK(sandbox_.kernels.folder().write(sandbox_.setup, place_, text));
  RunRequest wanted = request_for(wish_.spec, wish_.cwd);
  for (std::string& word : wanted.argv) replace(word, "{connection_file}", cat(place_, ".json"));
  TRY(StartRequest start, prepare(sandbox_.setup, std::move(wanted)));
  start.merge_output = true;
  TRY(process_, sandbox_.processes.start(start));
  sandbox_.tasks.spawn("kernel words", collect_words(shared_from_this(), process_, said_));
  return Ok{};
}

Task<Result<std::unique_ptr<zmtp::Peer>>> Kernel::connect_to(int port, zmtp::Type type, Clock::time_point until) {
  for (;;) {
    auto target = wish_.spec.speaks_ipc() ? http::Target::unix_socket(cat(place_, "-", port))
                                          : http::Target::tcp("127.0.0.1", static_cast<std::uint16_t>(port));
    auto left = until - Clock::now();
    auto peer = co_await zmtp::Peer::connect(std::move(target), type, left);
    if (peer) co_return peer;
    if (process_ended()) {
      std::string words = co_await obituary();
      co_return Error(Errc::unavailable, std::move(words));
    }
    if (Clock::now() >= until) co_return std::move(peer).error().in(cat("connect to the ", wish_.language, " kernel"));
    // It listens when it is ready to; there is nothing to be told by.
    co_await sleep_for(kTryAgain);
  }
}

Task<Result<>> Kernel::connect(Clock::time_point until) {
  CO_TRY(shell_, co_await connect_to(ports_[0], zmtp::Type::dealer, until));
  CO_TRY(iopub_, co_await connect_to(ports_[1], zmtp::Type::sub, until));
  if (wish_.spec.interrupt_by_message) {
    CO_TRY(control_, co_await connect_to(ports_[3], zmtp::Type::dealer, until));
  }
  co_return Ok{};
}

}  // namespace osb::execd
