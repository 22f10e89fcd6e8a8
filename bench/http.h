// One keep-alive connection to the daemon: just enough HTTP/1.1 to time it, and nothing that would add to the time.
#pragma once
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace bench {

struct Reply {
  int status = 0;
  std::string head, body;
};

class Http {
 public:
  explicit Http(std::uint16_t port) : port_(port) {}
  ~Http() { drop(); }
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  Reply call(const std::string& method, const std::string& path, const std::string& headers, const std::string& body) {
    if (fd_ < 0) connect();
    send(method, path, headers, body);
    Reply reply = read_head();
    read_body(reply);
    if (find(reply.head, "connection: close")) drop();
    return reply;
  }

  // A request that switches protocols; what follows is read with take().
  int upgrade(const std::string& path, const std::string& headers, const std::string& body) {
    if (fd_ < 0) connect();
    send("POST", path, headers + "Connection: Upgrade\r\nUpgrade: osb-exec/1\r\n", body);
    return read_head().status;
  }
  // The head of a request whose body the caller writes to the socket, and its answer.
  int begin(const std::string& method, const std::string& path, const std::string& headers, std::size_t length) {
    if (fd_ < 0) connect();
    send(method, path, headers + (length > 0 ? "Content-Length: " + std::to_string(length) + "\r\n" : ""), "");
    return fd_;
  }
  Reply finish() {
    Reply reply = read_head();
    read_body(reply);
    return reply;
  }
  std::string take(std::size_t size) {
    while (buffer_.size() < size) fill();
    std::string out = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return out;
  }
  void drop() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    buffer_.clear();
  }
  bool reachable() {
    try {
      return call("GET", "/health", "", "").status == 200;
    } catch (const std::exception&) {
      drop();
      return false;
    }
  }

 private:
  void connect() {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      drop();
      throw std::runtime_error("cannot connect to the daemon");
    }
    int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  void send(const std::string& method, const std::string& path, const std::string& headers, const std::string& body) {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) + "\r\n" + headers;
    if (!body.empty()) text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    text += "\r\n" + body;
    for (std::size_t sent = 0; sent < text.size();) {
      ssize_t n = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) throw std::runtime_error("the daemon hung up");
      sent += static_cast<std::size_t>(n);
    }
  }
  void fill() {
    pollfd waits{fd_, POLLIN, 0};
    if (::poll(&waits, 1, 30'000) <= 0) throw std::runtime_error("the daemon is silent");
    char chunk[65536];
    ssize_t n = ::recv(fd_, chunk, sizeof chunk, 0);
    if (n <= 0) throw std::runtime_error("the daemon hung up");
    buffer_.append(chunk, static_cast<std::size_t>(n));
  }
  static bool find(const std::string& head, const std::string& wanted) {
    auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
    return std::search(head.begin(), head.end(), wanted.begin(), wanted.end(), same) != head.end();
  }
  std::string line() {
    while (buffer_.find("\r\n") == std::string::npos) fill();
    std::size_t end = buffer_.find("\r\n");
    return take(end + 2).substr(0, end);
  }
  Reply read_head() {
    while (buffer_.find("\r\n\r\n") == std::string::npos) fill();
    Reply reply;
    reply.head = take(buffer_.find("\r\n\r\n") + 4);
    reply.status = std::atoi(reply.head.c_str() + 9);
    return reply;
  }
  void read_body(Reply& reply) {
    if (reply.status == 204) return;
    if (find(reply.head, "transfer-encoding: chunked")) {
      for (std::size_t size; (size = std::strtoul(line().c_str(), nullptr, 16)) != 0; line()) reply.body += take(size);
      line();
      return;
    }
    std::string lower = reply.head;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (auto at = lower.find("content-length:"); at != std::string::npos)
      reply.body = take(std::strtoul(lower.c_str() + at + 15, nullptr, 10));
  }

  std::uint16_t port_;
  int fd_ = -1;
  std::string buffer_;
};

// The text value of a key, wherever it stands in the answer.
inline std::string json_text(const std::string& body, const std::string& key) {
  auto at = body.find("\"" + key + "\"");
  if (at == std::string::npos) return {};
  auto begin = body.find('"', body.find(':', at) + 1) + 1;
  return body.substr(begin, body.find('"', begin) - begin);
}

}  // namespace bench
