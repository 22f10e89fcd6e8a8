// Runs a real opensandbox-launch with its own instance and temporary directories, and speaks its wire language.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/id.h"
#include "base/text.h"
#include "image/image.h"
#include "model/launch_wire.h"
#include "sys/descriptor_message.h"

extern char** environ;

namespace osb::test {

inline bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// Where the programs under test are: the build folder, or wherever they were carried to.
inline std::string program_dir() {
  const char* elsewhere = std::getenv("OSB_TEST_PROGRAMS");
  return elsewhere != nullptr ? elsewhere : OSB_BUILD_DIR;
}

class LaunchHarness {
 public:
  explicit LaunchHarness(std::vector<std::string> extra = {}) : extra_(std::move(extra)) {
    instance_ = "test-" + random_hex(4);
    run_dir_ = "/run/opensandbox/" + instance_;
    data_dir_ = program_dir() + "/kernel-test-data";  // images are made once for all tests
    std::filesystem::create_directories(data_dir_);
    auto store = image::Store::open(data_dir_ + "/images");
    if (store) {
      auto host = (*store)->resolve("host");
      if (host) host_ = *host;
    }
    start();
  }
  ~LaunchHarness() {
    socket_.reset();
    if (pid_ > 0) {
      if (kill_on_exit_) ::kill(pid_, SIGKILL);
      wait_exit();
    }
    std::error_code ignored;
    std::filesystem::remove_all(run_dir_, ignored);
  }

  void start() {
    std::vector<std::string> args = {program_dir() + "/opensandbox-launch",
                                     "--instance",
                                     instance_,
                                     "--run-dir",
                                     run_dir_,
                                     "--ranges-dir",
                                     "/run/opensandbox/ranges",
                                     "--data-dir",
                                     data_dir_,
                                     "--execd",
                                     program_dir() + "/opensandbox-execd",
                                     "--pool",
                                     "0",  // what is left of a sandbox can then be compared with nothing
                                     "--private"};
    args.insert(args.end(), extra_.begin(), extra_.end());
    std::vector<char*> argv;
    for (auto& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    ::posix_spawn(&pid_, argv[0], nullptr, nullptr, argv.data(), environ);
    eventually([&] { return connect(); });
  }

  bool connect() {
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string path = run_dir_ + "/launch.sock";
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
    socket_ = std::move(socket);
    return true;
  }

  const std::string& instance() const { return instance_; }
  const std::string& run_dir() const { return run_dir_; }
  std::string socket_path(const std::string& id) const { return run_dir_ + "/sandboxes/" + id + ".sock"; }
  pid_t pid() const { return pid_; }

  wire::CreateRequest request(const std::string& id) const {
    wire::CreateRequest request;
    id.copy(request.id.text, sizeof request.id.text);
    request.host_view = host_.host_view;
    for (const auto& layer : host_.layers) layer.copy(request.layers[request.layer_count++].hex, 64);
    request.head.seq = 7;
    return request;
  }

  // Sends a create and waits for its answer.
  wire::CreateReply create(const wire::CreateRequest& request, std::string setup = {}) {
    if (setup.empty()) {
      bool root = request.policy.user == UserMode::root;
      setup = cat("{\"env\":{},\"entrypoint\":[],\"cwd\":\"/workspace\",\"uid\":", root ? 0 : 1000, ",\"gid\":", root ? 0 : 1000,
                  ",\"home\":\"/home/user\",\"keep_caps\":", root, "}");
    }
    return ask_with_setup(request, setup);
  }

  // A spare, complete but for what is its claimer's.
  wire::CreateReply prepare(wire::CreateRequest request) {
    request.spare = 1;
    return create(request);
  }

  wire::CreateReply claim(const wire::ClaimRequest& request, const std::string& setup) { return ask_with_setup(request, setup); }

  template <class Request>
  wire::CreateReply ask_with_setup(const Request& request, const std::string& setup) {
    send_with_setup(request, setup);
    return create_reply();
  }

  template <class Request>
  void send_with_setup(const Request& request, const std::string& setup) {
    Fd memory(::memfd_create("setup", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    [[maybe_unused]] auto written = ::write(memory.get(), setup.data(), setup.size());
    ::lseek(memory.get(), 0, SEEK_SET);
    send(&request, sizeof request, memory.get());
  }

  wire::CreateReply create_reply() {
    wire::CreateReply reply;
    reply.failed = wire::Step::count_;
    receive(wire::Op::create, &reply, sizeof reply);
    return reply;
  }

  int ask(wire::Op op, const std::string& id, Fd* descriptor = nullptr) {
    wire::SandboxRequest request;
    request.head.op = op;
    request.head.seq = 9;
    id.copy(request.id.text, sizeof request.id.text);
    send(&request, sizeof request);
    wire::StatusReply reply;
    reply.sys = -1;
    receive(op, &reply, sizeof reply, descriptor);
    return reply.sys;
  }

  wire::UsageReply usage(const std::string& id) {
    wire::SandboxRequest request;
    request.head.op = wire::Op::usage;
    request.head.seq = 11;
    id.copy(request.id.text, sizeof request.id.text);
    send(&request, sizeof request);
    wire::UsageReply reply;
    receive(wire::Op::usage, &reply, sizeof reply);
    return reply;
  }

  wire::ListReply list() {
    wire::ListRequest request;
    send(&request, sizeof request);
    wire::ListReply reply;
    receive(wire::Op::list, &reply, sizeof reply);
    return reply;
  }

  wire::HelloReply hello() {
    wire::HelloRequest request;
    send(&request, sizeof request);
    wire::HelloReply reply;
    receive(wire::Op::hello, &reply, sizeof reply);
    return reply;
  }

  // Greets without reading the answers, as long as there is room or until it was `most` times; how often.
  std::size_t greet_deaf(std::size_t most) {
    wire::HelloRequest request;
    std::size_t sent = 0;
    while (sent < most && sys::send_with_descriptor(socket_.get(), &request, sizeof request, -1) >= 0) ++sent;
    return sent;
  }
  bool hear_greeting() {
    wire::HelloReply reply;
    return receive(wire::Op::hello, &reply, sizeof reply);
  }

  // From now on a client of its own; the old connection lives as long as what is returned.
  Fd reconnect() {
    Fd old = std::move(socket_);
    connect();
    return old;
  }

  std::optional<wire::ExitedEvent> wait_exited(std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    wire::ExitedEvent event;
    if (!receive(wire::Op::exited, &event, sizeof event, nullptr, limit)) return std::nullopt;
    return event;
  }

  void drop_extra_arguments() { extra_.clear(); }
  void kill_launcher() {
    ::kill(pid_, SIGKILL);
    wait_exit();
    socket_.reset();
  }
  void disconnect() { socket_.reset(); }
  // Waits for the launcher's own end, as after disconnecting a private one.
  bool wait_exit(std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    bool gone = eventually([&] { return ::waitpid(pid_, nullptr, WNOHANG) != 0; }, limit);
    if (gone) pid_ = 0;
    return gone;
  }

  // One HTTP exchange with a sandbox's execd; empty when it does not answer.
  std::string http(const std::string& id, const std::string& method, const std::string& target, const std::string& body = {}) const {
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string path = socket_path(id);
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
    timeval limit{20, 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::string request =
        cat(method, " ", target,
            " HTTP/1.1\r\nHost: sandbox\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
            "\r\n\r\n", body);
    if (::write(socket.get(), request.data(), request.size()) < 0) return {};
    std::string answer;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(socket.get(), buffer, sizeof buffer)) > 0;) answer.append(buffer, static_cast<std::size_t>(n));
    return answer;
  }

  // Runs a shell command inside; the whole event stream as text.
  std::string run(const std::string& id, const std::string& command) const {
    return http(id, "POST", "/command", cat("{\"command\":", json_string(command), "}"));
  }

 private:
  void send(const void* message, std::size_t size, int descriptor = -1) {
    sys::send_with_descriptor(socket_.get(), message, size, descriptor);
  }

  // Reads until a message of this kind comes; others are events nobody asked for here.
  bool receive(wire::Op op, void* into, std::size_t size, Fd* descriptor = nullptr,
               std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
      pollfd ready{socket_.get(), POLLIN, 0};
      if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
      alignas(8) char buffer[wire::kMaxMessage];
      Fd received;
      auto n = sys::receive_with_descriptor(socket_.get(), buffer, sizeof buffer, 0, received);
      if (n <= 0) return false;
      wire::Head head;
      std::memcpy(&head, buffer, sizeof head);
      if (head.op != op) continue;
      std::memcpy(into, buffer, std::min(size, static_cast<std::size_t>(n)));
      if (descriptor != nullptr) *descriptor = std::move(received);
      return true;
    }
  }

  std::vector<std::string> extra_;
  std::string instance_;
  std::string run_dir_;
  std::string data_dir_;
  image::Image host_;
  pid_t pid_ = 0;
  bool kill_on_exit_ = false;
  Fd socket_;
};

}  // namespace osb::test
