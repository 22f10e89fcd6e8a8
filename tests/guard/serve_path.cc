// The way of a request through serve, for counting instructions: create, exec and delete over TCP with a key, through the real
// doors, API, lifecycle, store, audit log and proxy, with a runtime made of memory and an execd that plays a fixed answer.
//
// One thread plays the client, the server and execd, so that the same input takes the same instructions. tools/instruction_guard.py
// runs this under callgrind, which counts inside the measure_* functions only, and compares with tests/guard/baseline.json.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/api.h"
#include "audit/audit.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "http/http.h"
#include "lifecycle/fake_runtime.h"
#include "lifecycle/service.h"
#include "proxy/proxy.h"
#include "store/store.h"

namespace osb {
namespace {

constexpr std::string_view kCreateBody =
    R"({"image":{"uri":"host"},"timeout":600,"resourceLimits":{"cpu":"1","memory":"256Mi"},"env":{"LANG":"C.UTF-8","TEAM":"a"},)"
    R"("entrypoint":["tail","-f","/dev/null"],"metadata":{"team":"a","purpose":"guard"}})";
constexpr std::string_view kKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
constexpr std::string_view kExecBody = R"({"command":"echo hello"})";

// What execd answers to `echo hello`: a stream of three events in chunks.
std::string execd_answer() {
  std::string out =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n"
      "X-Request-ID: 0123456789abcdef0123456789abcdef\r\n\r\n";
  for (std::string_view event : {R"({"type":"init","text":"0123456789abcdef0123456789abcdef","timestamp":1760000000000})",
                                 R"({"type":"stdout","text":"hello","timestamp":1760000000001})",
                                 R"({"type":"execution_complete","execution_time":1,"timestamp":1760000000002})"}) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", event.size() + 2);
    out += cat(size, event, "\n\n\r\n");
  }
  return out + "0\r\n\r\n";
}

[[noreturn]] void give_up(std::string_view what) {
  std::fprintf(stderr, "guard: %.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

// Appends what is there without waiting; false at the end of the stream.
bool read_available(int fd, std::string& into) {
  char buffer[16 * 1024];
  for (;;) {
    auto n = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN;
    into.append(buffer, static_cast<std::size_t>(n));
  }
}

void write_whole(int fd, std::string_view bytes) {
  if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    give_up("a socket does not take a request");
}

// The length of the first message in `bytes` once it is whole: a head, and a body by its length, by chunks, or none.
std::optional<std::size_t> whole_message(std::string_view bytes) {
  auto head = bytes.find("\r\n\r\n");
  if (head == bytes.npos) return std::nullopt;
  head += 4;
  auto fields = bytes.substr(0, head);
  if (fields.find("chunked") != fields.npos) {
    auto end = bytes.find("\r\n0\r\n\r\n", head - 2);
    return end == bytes.npos ? std::nullopt : std::optional(end + 7);
  }
  auto at = fields.find("Content-Length: ");
  if (at == fields.npos) return head;
  auto rest = fields.substr(at + 16);
  auto length = parse_int<std::size_t>(rest.substr(0, rest.find('\r')));
  if (!length) give_up("a message has a strange length");
  return bytes.size() >= head + *length ? std::optional(head + *length) : std::nullopt;
}

// execd of every sandbox: one listening socket, any number of kept connections. Only those with something to say are looked at: what is
// counted is the server, and this as little as can be.
class Execd {
 public:
  explicit Execd(const std::string& path) : answer_(execd_answer()), ready_(::epoll_create1(EPOLL_CLOEXEC)) {
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_.get(), 64) != 0)
      give_up("cannot listen where execd should be");
    watch(listener_.get());
  }

  void play() {
    epoll_event event{};
    while (::epoll_wait(ready_.get(), &event, 1, 0) == 1) {
      if (event.data.fd == listener_.get()) {
        accept_one();
      } else {
        serve(connections_.at(event.data.fd));
      }
    }
  }

 private:
  struct Connection {
    Fd fd;
    std::string received;
  };
  void watch(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, fd, &event) != 0) give_up("cannot watch a socket");
  }
  void accept_one() {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    watch(fd.get());
    int number = fd.get();
    connections_.insert_or_assign(number, Connection{std::move(fd), {}});
  }
  void serve(Connection& connection) {
    int number = connection.fd.get();
    if (!read_available(number, connection.received)) {
      connections_.erase(number);
      return;
    }
    if (auto size = whole_message(connection.received)) {
      connection.received.erase(0, *size);
      write_whole(number, answer_);
    }
  }
  std::string answer_;
  Fd ready_;
  Fd listener_;
  std::map<int, Connection> connections_;
};

class Bed {
 public:
  // Valgrind does not know every system call of the image store; images are the one other thing made of memory here.
  Bed() : directory_(make_directory()), execd_(directory_ + "/execd.sock") {
    log::set_level(log::Level::error);
    runtime_.execd_target = http::Target::unix_socket(directory_ + "/execd.sock");
    store_ = must(store::Store::open(directory_ + "/opensandbox.db"));
    audit_ = must(audit::Log::open(directory_ + "/audit"));
    service_ = std::make_unique<lifecycle::Service>(io_, *store_, *audit_, images_, runtime_, options());
    runtime_.on_ended([this](const runtime::Ended& ended) { service_->on_ended(ended); });
    must(run(service_->start()));
    proxy_ = std::make_unique<proxy::Proxy>(io_, *service_, *audit_, proxy::Tokens("secret"));
    api::Keys keys;
    keys.add("default", kKey, true);
    api_ = std::make_unique<api::Api>(io_, *service_, *proxy_, images_, std::move(keys), api::Options{});
    server_ = std::make_unique<http::Server>(io_, http::Limits{}, api_->handler(api::Door::tcp));
    port_ = must(server_->listen_tcp("127.0.0.1", 0));
    connect();
  }
  ~Bed() {
    client_.reset();
    run_void(server_->stop(std::chrono::seconds(1)));
    run_void(proxy_->stop());
    run_void(service_->stop());
    std::filesystem::remove_all(directory_);
  }

  std::string create() {
    auto reply = ask("POST", "/v1/sandboxes", kCreateBody, "202");
    auto at = reply.find(R"("id":")");
    if (at == reply.npos) give_up("a create answered without an id");
    return reply.substr(at + 6, reply.find('"', at + 6) - at - 6);
  }
  void exec(const std::string& id) {
    auto reply = ask("POST", cat("/sandboxes/", id, "/proxy/44772/command"), kExecBody, "200", token_of(id));
    if (reply.find("execution_complete") == reply.npos) give_up("an exec did not end");
  }
  void remove(const std::string& id) { ask("DELETE", cat("/v1/sandboxes/", id), {}, "204"); }

  // Asked for beforehand: clients keep it too.
  void learn_token(const std::string& id) {
    auto reply = ask("GET", cat("/v1/sandboxes/", id, "/endpoints/44772"), {}, "200");
    constexpr std::string_view kField = R"("X-EXECD-ACCESS-TOKEN":")";
    auto at = reply.find(kField);
    if (at == reply.npos) give_up("an endpoint answered without a token");
    at += kField.size();
    tokens_[id] = cat("X-EXECD-ACCESS-TOKEN: ", std::string_view(reply).substr(at, reply.find('"', at) - at), "\r\n");
  }

 private:
  static std::string make_directory() {
    const char* above = ::getenv("TMPDIR");  // of whoever counts: removed also when this gives up
    auto path = cat(above != nullptr ? above : "/tmp", "/osb-guard-XXXXXX");
    if (::mkdtemp(path.data()) == nullptr) give_up("cannot make a directory");
    return path;
  }

  static lifecycle::Options options() {
    lifecycle::Options options;
    options.spares.automatic = false;  // made by timers
    options.spares.most = 0;
    options.host_room = [] { return runtime::HostRoom{}; };  // the host this runs on must not decide the count
    return options;
  }

  template <class T>
  static T must(Result<T> result) {
    if (!result) give_up(result.error().what());
    return *std::move(result);
  }

  void connect() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(client_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up("cannot connect to the server");
    int yes = 1;
    ::setsockopt(client_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }

  const std::string& token_of(const std::string& id) const { return tokens_.at(id); }

  std::string ask(std::string_view method, std::string_view path, std::string_view body, std::string_view status,
                  std::string_view field = {}) {
    auto key = field.empty() ? cat("OPEN-SANDBOX-API-KEY: ", kKey, "\r\n") : std::string(field);
    auto request = cat(method, " ", path, " HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: guard/1\r\nAccept: */*\r\n", key);
    if (!body.empty()) request += cat("Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n");
    request += cat("\r\n", body);
    write_whole(client_.get(), request);
    std::string reply;
    std::optional<std::size_t> size;
    while (!size) {
      turn();
      if (!read_available(client_.get(), reply)) give_up("the server hung up");
      size = whole_message(reply);
    }
    if (!reply.starts_with(cat("HTTP/1.1 ", status, " "))) give_up(cat(method, " ", path, " answered ", reply.substr(0, 400)));
    return reply;
  }

  void turn() {
    io_.restart();
    io_.poll();
    execd_.play();
  }

  template <class T>
  T run(Task<T> task) {
    std::optional<T> out;
    run_void(keep(std::move(task), out));
    return *std::move(out);
  }
  template <class T>
  static Task<void> keep(Task<T> task, std::optional<T>& out) {
    out = co_await std::move(task);
  }
  void run_void(Task<void> task) {
    bool done = false;
    asio::co_spawn(io_.get_executor(), std::move(task), [&done](std::exception_ptr) { done = true; });
    while (!done) {
      io_.restart();
      io_.run_one();
    }
  }

  std::string directory_;
  asio::io_context io_{1};
  Execd execd_;
  lifecycle::FakeRuntime runtime_{io_};
  lifecycle::FakeImages images_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<audit::Log> audit_;
  std::unique_ptr<lifecycle::Service> service_;
  std::unique_ptr<proxy::Proxy> proxy_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<http::Server> server_;
  std::uint16_t port_ = 0;
  Fd client_;
  std::map<std::string, std::string> tokens_;
};

// Enough that a checkpoint of the database, which comes every few hundred writes, is a small part of the mean.
constexpr std::size_t kEach = 200;

using Ids = std::vector<std::string>;

}  // namespace

// Callgrind starts and stops counting at these names.
extern "C" {
[[gnu::noinline]] void measure_create(Bed& bed, Ids& ids) {
  for (std::size_t i = 0; i < kEach; ++i) ids.push_back(bed.create());
}
[[gnu::noinline]] void measure_exec_first(Bed& bed, const Ids& ids) {
  for (const auto& id : ids) bed.exec(id);
}
[[gnu::noinline]] void measure_exec_next(Bed& bed, const Ids& ids) {
  for (std::size_t i = 0; i < kEach; ++i) bed.exec(ids.front());
}
[[gnu::noinline]] void measure_delete(Bed& bed, const Ids& ids) {
  for (const auto& id : ids) bed.remove(id);
}
}

namespace {

void measure_all(Bed& bed) {
  Ids ids;
  measure_create(bed, ids);
  for (const auto& id : ids) bed.learn_token(id);
  measure_exec_first(bed, ids);
  measure_exec_next(bed, ids);
  measure_delete(bed, ids);
}

// What is paid once: caches, prepared statements, the first pages of the allocator.
void warm_up(Bed& bed) {
  for (int i = 0; i < 20; ++i) {
    auto id = bed.create();
    bed.learn_token(id);
    bed.exec(id);
    bed.exec(id);
    bed.remove(id);
  }
}

}  // namespace
}  // namespace osb

// serve_path LIVE: with so many other sandboxes there.
int main(int argc, char** argv) {
  auto live = argc > 1 ? osb::parse_int<std::size_t>(argv[1]).value_or(0) : 0;
  osb::Bed bed;
  osb::warm_up(bed);
  for (std::size_t i = 0; i < live; ++i) bed.create();
  osb::measure_all(bed);
  std::printf("%zu\n", osb::kEach);
  return 0;
}
