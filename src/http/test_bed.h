// For tests: a server on its own thread, and a client that speaks raw bytes with blocking calls.
#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "http/http.h"
#include "http/listener.h"

namespace osb::http {

template <class T>
Task<void> deliver(Task<T> task, std::optional<T>& into) {
  into.emplace(co_await std::move(task));
}

// Runs `task` on `io`, whose loop another thread turns, and waits for its result.
template <class T>
T wait_for(asio::io_context& io, Task<T> task) {
  std::optional<T> result;
  asio::co_spawn(io, deliver(std::move(task), result), asio::use_future).get();
  return std::move(*result);
}
inline void wait_for(asio::io_context& io, Task<void> task) { asio::co_spawn(io, std::move(task), asio::use_future).get(); }

inline ClientRequest request_of(std::string method, std::string target, std::string body = {}) {
  ClientRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  return request;
}

class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/osb-http-XXXXXX";
    if (::mkdtemp(name) == nullptr) std::abort();
    path_ = name;
  }
  ~TempDir() {
    for (const auto& file : {"/s", "/t", "/plain"}) ::unlink((path_ + file).c_str());
    ::rmdir(path_.c_str());
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto address = tcp_address("127.0.0.1", port);
    if (::connect(fd_.get(), address->get(), address->size) != 0) std::abort();
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      auto sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void end() { ::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }
  // Everything until the server closes; "(timeout)" is appended when it does not within the patience of a test.
  std::string read_to_end() {
    while (read_more(20'000)) {
    }
    return std::move(got_) + (ended_ ? "" : "(timeout)");
  }
  // Reads until `text` has come `times` times; false when the connection ends before.
  bool read_until(std::string_view text, std::size_t times = 1) {
    while (count(text) < times)
      if (!read_more(20'000)) return false;
    return true;
  }
  std::size_t count(std::string_view text) const {
    std::size_t found = 0;
    for (auto at = got_.find(text); at != std::string::npos; at = got_.find(text, at + text.size())) ++found;
    return found;
  }
  const std::string& got() const { return got_; }
  void forget() { got_.clear(); }
  bool silent(int millis) { return !read_more(millis) && !ended_; }
  int fd() const { return fd_.get(); }

 private:
  bool read_more(int millis) {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, millis) != 1) return false;
    char buffer[65536];
    auto size = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    ended_ = size <= 0;
    if (size > 0) got_.append(buffer, static_cast<std::size_t>(size));
    return size > 0;
  }
  Fd fd_;
  std::string got_;
  bool ended_ = false;
};

class TestBed {
 public:
  explicit TestBed(Handler handler, Limits limits = {}) : server_(io_, limits, std::move(handler)) {
    port_ = *server_.listen_tcp("127.0.0.1", 0);
    loop_ = std::thread([this] { io_.run(); });
  }
  ~TestBed() { stop(std::chrono::seconds(0)); }

  void stop(std::chrono::steady_clock::duration grace) {
    if (!loop_.joinable()) return;
    wait_for(io_, server_.stop(grace));
    work_.reset();
    loop_.join();
  }
  std::uint16_t port() const { return port_; }
  Target target() const { return Target::tcp("127.0.0.1", port_); }
  asio::io_context& io() { return io_; }
  Server& server() { return server_; }
  // Sends `bytes`, ends its side, gives all that comes back.
  std::string exchange(std::string_view bytes) {
    RawClient client(port_);
    client.send(bytes);
    client.end();
    return client.read_to_end();
  }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<Executor> work_{io_.get_executor()};
  Server server_;
  std::uint16_t port_ = 0;
  std::thread loop_;
};

// What the handlers of a test saw; written by the loop's thread, read by the test.
class Seen {
 public:
  void add(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> lines() const {
    std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace osb::http
