#include "http.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "interrupt.h"

namespace bench {
namespace {

constexpr int kSilenceMs = 60'000, kLastAnswerMs = 3'000;

int dial_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("the socket's path is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  throw std::runtime_error("cannot connect to " + path);
}

int dial_tcp(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) throw std::runtime_error("unknown host " + host);
  int fd = -1;
  for (auto* at = found; at && fd < 0; at = at->ai_next) {
    fd = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, at->ai_addr, at->ai_addrlen) == 0) break;
    ::close(fd);
    fd = -1;
  }
  ::freeaddrinfo(found);
  if (fd < 0) throw std::runtime_error("cannot connect to " + host + ":" + std::to_string(port));
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

bool find(const std::string& head, const std::string& wanted) {
  auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::search(head.begin(), head.end(), wanted.begin(), wanted.end(), same) != head.end();
}

}  // namespace

std::string Address::authority() const {
  if (!socket.empty()) return "localhost";
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

int Address::dial() const { return socket.empty() ? dial_tcp(host, port) : dial_unix(socket); }

Address Address::parse(const std::string& authority) {
  auto colon = authority.rfind(':');
  if (colon == std::string::npos || authority.find(']', colon) != std::string::npos) return {.host = authority, .port = 80};
  std::string host = authority.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {.host = host, .port = static_cast<std::uint16_t>(std::atoi(authority.c_str() + colon + 1))};
}

Reply Http::call(const std::string& method, const std::string& path, const std::string& headers, const std::string& body) {
  send(method, path, headers, body);
  return finish();
}

Reply Http::finish() {
  Reply reply = read_head();
  read_body(reply);
  if (find(reply.head, "connection: close")) drop();
  return reply;
}

int Http::upgrade(const std::string& path, const std::string& headers, const std::string& body) {
  send("POST", path, headers + "Connection: Upgrade\r\nUpgrade: osb-exec/1\r\n", body);
  return read_head().status;
}

int Http::begin(const std::string& method, const std::string& path, const std::string& headers, std::size_t length) {
  send(method, path, headers + (length > 0 ? "Content-Length: " + std::to_string(length) + "\r\n" : ""), "");
  return fd_;
}

// A server closes a kept connection that nobody used for a minute or so; that is no failure.
bool Http::was_closed() const {
  char byte = 0;
  return fd_ >= 0 && buffer_.empty() && ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void Http::send(const std::string& method, const std::string& path, const std::string& headers, const std::string& body) {
  if (was_closed()) drop();
  if (fd_ < 0) fd_ = address_.dial();
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: " + address_.authority() + "\r\n" + headers;
  if (!body.empty()) text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  text += "\r\n" + body;
  for (std::size_t sent = 0; sent < text.size();) {
    ssize_t n = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      drop();
      throw std::runtime_error("the server hung up");
    }
    sent += static_cast<std::size_t>(n);
  }
}

std::string Http::take(std::size_t size) {
  while (buffer_.size() < size) fill();
  std::string out = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return out;
}

void Http::drop() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  buffer_.clear();
}

bool Http::reachable() {
  try {
    return call("GET", "/health", "", "").status == 200;
  } catch (const std::exception&) {
    drop();
    return false;
  }
}

void Http::fill() {
  // A request that is under way is answered even when we are told to end: what it makes must be known to be taken down.
  pollfd waits{fd_, POLLIN, 0};
  int ready = ::poll(&waits, 1, interrupted() ? kLastAnswerMs : kSilenceMs);
  if (ready < 0 && errno == EINTR) ready = ::poll(&waits, 1, kLastAnswerMs);
  char chunk[65536];
  ssize_t n = ready > 0 ? ::recv(fd_, chunk, sizeof chunk, 0) : -1;
  if (n > 0) return void(buffer_.append(chunk, static_cast<std::size_t>(n)));
  drop();  // an answer that is half read would be taken for the next one
  check_interrupted();
  throw std::runtime_error(ready == 0 ? "the server is silent" : "the server hung up");
}

std::string Http::line() {
  while (buffer_.find("\r\n") == std::string::npos) fill();
  std::size_t end = buffer_.find("\r\n");
  return take(end + 2).substr(0, end);
}

Reply Http::read_head() {
  while (buffer_.find("\r\n\r\n") == std::string::npos) fill();
  Reply reply;
  reply.head = take(buffer_.find("\r\n\r\n") + 4);
  reply.status = std::atoi(reply.head.c_str() + 9);
  return reply;
}

void Http::read_body(Reply& reply) {
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

std::string json_text(const std::string& body, const std::string& key) {
  auto at = body.find("\"" + key + "\"");
  if (at == std::string::npos) return {};
  auto begin = body.find('"', body.find(':', at) + 1) + 1;
  return body.substr(begin, body.find('"', begin) - begin);
}

}  // namespace bench
