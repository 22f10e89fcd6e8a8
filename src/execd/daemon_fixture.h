// For tests: execd in a process of its own on a temporary unix socket, and a client that sees the bytes of the wire.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "execd/commands.h"
#include "execd/daemon.h"
#include "execd/frames.h"
#include "model/launch_wire.h"

namespace osb::execd {

using namespace std::chrono_literals;

// Looks until `condition` holds; false when it does not within ten seconds.
inline bool eventually(const std::function<bool()>& condition) {
  auto end = std::chrono::steady_clock::now() + 10s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(2000);
  }
  return true;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline bool alive(pid_t pid) { return ::kill(pid, 0) == 0; }

struct Reply {
  int status = 0;
  std::string head;  // as sent, with the status line
  std::string body;  // chunks joined
  bool has(std::string_view line) const { return head.find(line) != std::string::npos; }
};

// One connection, blocking; every read gives up after 20 seconds.
class Wire {
 public:
  explicit Wire(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      auto n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void request(std::string_view method, std::string_view target, std::string_view body = {}, std::string_view headers = {}) {
    send(cat(method, " ", target, " HTTP/1.1\r\nHost: test\r\nContent-Length: ", body.size(), "\r\n", headers, "\r\n", body));
  }

  // More bytes into the buffer; false at the end of the stream.
  bool receive() {
    char bytes[16384];
    auto n = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (n > 0) buffer_.append(bytes, static_cast<std::size_t>(n));
    return n > 0;
  }
  std::string take(std::size_t count) {
    while (buffer_.size() < count && receive()) {
    }
    std::string out = buffer_.substr(0, count);
    buffer_.erase(0, out.size());
    return out;
  }
  std::string take_until(std::string_view mark) {
    while (buffer_.find(mark) == std::string::npos)
      if (!receive()) return take(buffer_.size());
    return take(buffer_.find(mark) + mark.size());
  }

  Reply head() {
    Reply reply;
    reply.head = take_until("\r\n\r\n");
    if (reply.head.size() > 12) reply.status = std::atoi(reply.head.c_str() + 9);
    return reply;
  }
  // Empty at the end of the body.
  std::string chunk() {
    auto size = std::strtoul(take_until("\r\n").c_str(), nullptr, 16);
    std::string bytes = take(size);
    take(2);
    return bytes;
  }
  Reply reply() {
    Reply reply = head();
    if (reply.has("Transfer-Encoding: chunked")) {
      for (std::string bytes = chunk(); !bytes.empty(); bytes = chunk()) reply.body += bytes;
    } else if (auto at = reply.head.find("Content-Length: "); at != std::string::npos) {
      reply.body = take(std::strtoul(reply.head.c_str() + at + 16, nullptr, 10));
    }
    return reply;
  }
  Frame frame(std::string& storage) {
    std::string start = take(kFrameHead);
    if (start.size() < kFrameHead) return {.type = FrameType::input_end, .payload = "closed"};
    std::size_t length = 0;
    for (std::size_t i = 1; i < kFrameHead; ++i) length = length << 8 | static_cast<unsigned char>(start[i]);
    storage = take(length);
    return {.type = static_cast<FrameType>(start[0]), .payload = storage};
  }
  bool at_end() { return buffer_.empty() && !receive(); }
  void close() { socket_.reset(); }

 private:
  Fd socket_;
  std::string buffer_;
};

using Event = boost::json::object;

inline std::vector<Event> events_of(const std::string& body) {
  std::vector<Event> events;
  for (std::string_view line : split(body, '\n'))
    if (!line.empty()) events.push_back(boost::json::parse(line).as_object());
  return events;
}

inline std::string text_of(const Event& event, std::string_view name) {
  auto* value = event.if_contains(name);
  return value ? std::string(value->as_string()) : "";
}

// "stdout:hello" for each line of output.
inline std::vector<std::string> output_of(const std::vector<Event>& events) {
  std::vector<std::string> output;
  for (const Event& event : events)
    if (text_of(event, "type") == "stdout" || text_of(event, "type") == "stderr")
      output.push_back(text_of(event, "type") + ":" + text_of(event, "text"));
  return output;
}

inline std::string error_code_of(const std::vector<Event>& events) {
  return events.empty() || !events.back().contains("error") ? "" : std::string(events.back().at("error").at("evalue").as_string());
}

class DaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/execd-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    dir_ = path;
    // What a killed daemon leaves behind comes to the test, which removes it.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  }

  void TearDown() override {
    std::string children = cat("/proc/self/task/", ::getpid(), "/children");
    EXPECT_TRUE(eventually([&] {
      std::istringstream pids(read_text(children));
      for (pid_t pid = 0; pids >> pid;) ::kill(pid, SIGKILL);
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      return read_text(children).empty();
    }));
    EXPECT_EQ(::system(cat("rm -rf ", dir_).c_str()), 0);
  }

  // Returns when execd listens.
  void start(Start start = start_elsewhere({}, "")) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    Fd ready(ends[0]);
    Fd report(ends[1]);
    start.socket_path = socket_path();
    pid_ = ::fork();
    if (pid_ == 0) {
      start.report = std::move(report);
      run_daemon(std::move(start));
    }
    report.reset();
    ASSERT_EQ(::read(ready.get(), &report_, sizeof report_), static_cast<ssize_t>(sizeof report_));
  }

  std::string socket_path() const { return dir_ + "/execd.sock"; }
  std::string file(std::string_view name) const { return cat(dir_, "/", name); }
  Wire connect() const { return Wire(socket_path()); }

  Reply ask(std::string_view method, std::string_view target, std::string_view body = {}, std::string_view headers = {}) const {
    Wire wire = connect();
    wire.request(method, target, body, headers);
    return wire.reply();
  }
  // POST /command; `more` is further members of the request.
  Reply command(std::string_view text, std::string_view more = {}) const {
    return ask("POST", "/command", cat("{\"command\":", json_string(text), more, "}"));
  }
  std::vector<Event> run(std::string_view text, std::string_view more = {}) const { return events_of(command(text, more).body); }
  Event status_of(std::string_view id) const { return boost::json::parse(ask("GET", cat("/command/status/", id)).body).as_object(); }
  std::string start_in_background(std::string_view text, std::string_view more = {}) const {
    auto events = run(text, cat(",\"background\":true", more));
    return events.empty() ? "" : text_of(events.front(), "text");
  }
  pid_t pid_in(const std::string& path) const {
    eventually([&] { return read_text(path).ends_with("\n"); });
    return std::atoi(read_text(path).c_str());
  }

  std::string dir_;
  pid_t pid_ = -1;
  wire::ChildReport report_;
};

}  // namespace osb::execd
