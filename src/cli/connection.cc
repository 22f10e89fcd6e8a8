#include "cli/connection.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/text.h"

namespace osb::cli {
namespace {

constexpr std::size_t kMaxHead = 64 * 1024;
constexpr std::size_t kMaxBody = 64 * 1024 * 1024;

Error lost(std::string what, int sys) { return Error::from_errno(std::move(what), sys, Errc::unavailable); }

int millis_until(Connection::Deadline deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

Result<Fd> open_unix(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  if (!socket || ::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return lost(cat("connect to ", path), errno);
  return socket;
}

Result<Fd> open_one(const addrinfo& info, Connection::Deadline deadline) {
  Fd socket(::socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return lost("socket", errno);
  if (::connect(socket.get(), info.ai_addr, info.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return lost("connect", errno);
    pollfd waiting{socket.get(), POLLOUT, 0};
    if (::poll(&waiting, 1, millis_until(deadline)) <= 0) return lost("connect", ETIMEDOUT);
    int failed = 0;
    socklen_t size = sizeof failed;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
    if (failed != 0) return lost("connect", failed);
  }
  int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

Result<Fd> open_tcp(const Address& address, Connection::Deadline deadline) {
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (int failed = ::getaddrinfo(address.host.c_str(), cat(address.port).c_str(), &wish, &list); failed != 0)
    return Error(Errc::unavailable, cat("find ", address.host, ": ", ::gai_strerror(failed)));
  Result<Fd> socket = lost("connect", ECONNREFUSED);
  for (auto* info = list; info != nullptr && !socket; info = info->ai_next) socket = open_one(*info, deadline);
  ::freeaddrinfo(list);
  if (!socket) return std::move(socket).error().in(cat("reach ", address.authority()));
  return socket;
}

std::string head_of(const Request& request, std::string_view authority) {
  std::string out = cat(request.method, " ", request.target, " HTTP/1.1\r\nHost: ", authority, "\r\n");
  for (const auto& [name, value] : request.headers) out += cat(name, ": ", value, "\r\n");
  return out;
}

Result<Reply> parse_head(std::string_view head) {
  auto lines = split(head, '\n');
  std::string_view status = lines[0];
  auto code = status.starts_with("HTTP/1.") && status.size() >= 12 ? parse_int<int>(status.substr(9, 3)) : std::nullopt;
  if (!code) return Error(Errc::malformed, "what answers there does not speak HTTP");
  Reply reply;
  reply.status = *code;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto colon = lines[i].find(':');
    if (colon == lines[i].npos) continue;
    auto value = lines[i].substr(colon + 1);
    if (value.ends_with('\r')) value.remove_suffix(1);
    reply.headers.emplace_back(to_lower(lines[i].substr(0, colon)), std::string(trim(value)));
  }
  return reply;
}

}  // namespace

std::string_view Reply::header(std::string_view name) const {
  auto found = std::ranges::find_if(headers, [&](const auto& h) { return h.first == name; });
  return found == headers.end() ? std::string_view{} : std::string_view(found->second);
}

Result<Connection> Connection::open(const Address& address, Deadline deadline) {
  TRY(auto socket, address.is_unix ? open_unix(address.host) : open_tcp(address, deadline));
  return Connection(std::move(socket), address.authority());
}

Result<> Connection::wait(short events, Deadline deadline) {
  pollfd fds[2] = {{socket_.get(), events, 0}, {interrupt_, POLLIN, 0}};
  if (stall_.count() > 0) deadline = std::min(deadline, std::chrono::steady_clock::now() + stall_);
  for (;;) {
    int ready = ::poll(fds, 2, millis_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return lost("poll", errno);
    if (ready == 0) return Error(Errc::timeout, "the daemon does not answer");
    if (fds[1].revents != 0) return lost("interrupted", EINTR);
    return Ok{};
  }
}

Result<> Connection::send(const Request& request, Deadline deadline) {
  std::string out = head_of(request, authority_);
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT")
    out += cat("Content-Length: ", request.body.size(), "\r\n");
  out += "\r\n";
  out += request.body;
  return send_bytes(out, deadline);
}

Result<> Connection::send_bytes(std::string_view rest, Deadline deadline) {
  while (!rest.empty()) {
    auto n = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
      rest.remove_prefix(static_cast<std::size_t>(n));
    else if (errno == EAGAIN)
      CHECK_OK(wait(POLLOUT, deadline));
    else if (errno != EINTR)
      return lost("send to the daemon", errno);
  }
  return Ok{};
}

bool Connection::answered() {
  pollfd peer{socket_.get(), POLLIN, 0};
  return ::poll(&peer, 1, 0) > 0;
}

Result<std::size_t> Connection::fill(Deadline deadline) {
  char bytes[64 * 1024];
  for (;;) {
    CHECK_OK(wait(POLLIN, deadline));
    auto n = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return lost("read from the daemon", errno);
    unread_.append(bytes, static_cast<std::size_t>(n));
    return static_cast<std::size_t>(n);
  }
}

Result<Reply> Connection::read_head(Deadline deadline) {
  std::size_t end = 0;
  while ((end = unread_.find("\r\n\r\n")) == std::string::npos) {
    if (unread_.size() > kMaxHead) return Error(Errc::too_large, "the daemon's answer has no end of its head");
    TRY(auto n, fill(deadline));
    if (n == 0) return lost("read from the daemon", ECONNRESET);
  }
  auto reply = parse_head(std::string_view(unread_).substr(0, end));
  unread_.erase(0, end + 4);
  if (reply) reusable_ = !iequals(reply->header("connection"), "close");
  return reply;
}

Result<> Connection::read_exactly(std::uint64_t size, Deadline deadline, const Sink& sink) {
  while (size > 0) {
    if (unread_.empty()) {
      TRY(auto n, fill(deadline));
      if (n == 0) return lost("read from the daemon", ECONNRESET);
    }
    auto part = std::string_view(unread_).substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(size, unread_.size())));
    size -= part.size();
    stopped_ = !sink(part);
    unread_.erase(0, part.size());
    if (stopped_) {
      reusable_ = false;
      return Ok{};
    }
  }
  return Ok{};
}

Result<std::string> Connection::read_line(Deadline deadline) {
  std::size_t end = 0;
  while ((end = unread_.find("\r\n")) == std::string::npos) {
    if (unread_.size() > kMaxHead) return Error(Errc::too_large, "the daemon's answer has an endless line");
    TRY(auto n, fill(deadline));
    if (n == 0) return lost("read from the daemon", ECONNRESET);
  }
  auto line = unread_.substr(0, end);
  unread_.erase(0, end + 2);
  return line;
}

Result<> Connection::read_chunks(Deadline deadline, const Sink& sink) {
  for (;;) {
    TRY(auto line, read_line(deadline));
    auto digits = std::string_view(line).substr(0, line.find(';'));
    std::uint64_t size = 0;
    auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
    if (failed != std::errc{} || end != digits.data() + digits.size()) return Error(Errc::malformed, "the daemon's answer is cut wrongly");
    if (size == 0) break;
    CHECK_OK(read_exactly(size, deadline, sink));
    if (stopped_) return Ok{};
    TRY(auto gap, read_line(deadline));
    if (!gap.empty()) return Error(Errc::malformed, "the daemon's answer is cut wrongly");
  }
  for (;;) {  // trailers are dropped
    TRY(auto line, read_line(deadline));
    if (line.empty()) return Ok{};
  }
}

Result<> Connection::read_body(const Reply& head, Deadline deadline, const Sink& sink) {
  if (head.status == 204 || head.status == 304 || head.status / 100 == 1) return Ok{};
  if (iequals(head.header("transfer-encoding"), "chunked")) return read_chunks(deadline, sink);
  if (auto length = head.header("content-length"); !length.empty()) {
    auto size = parse_int<std::uint64_t>(length);
    if (!size) return Error(Errc::malformed, "the daemon's answer has a wrong length");
    return read_exactly(*size, deadline, sink);
  }
  reusable_ = false;
  for (;;) {
    if (!unread_.empty() && !sink(std::exchange(unread_, {}))) return Ok{};
    TRY(auto n, fill(deadline));
    if (n == 0) return Ok{};
  }
}

Result<Reply> Connection::stream(const Request& request, Deadline deadline, const Sink& sink) {
  CHECK_OK(send(request, deadline));
  TRY(auto reply, read_head(deadline));
  CHECK_OK(read_body(reply, deadline, sink));
  return reply;
}

Result<Reply> Connection::fetch(const Request& request, Deadline deadline,
                                const std::function<bool(const Reply&, std::string_view)>& sink) {
  CHECK_OK(send(request, deadline));
  TRY(auto reply, read_head(deadline));
  CHECK_OK(read_body(reply, deadline, [&](std::string_view bytes) { return sink(reply, bytes); }));
  return reply;
}

Result<Reply> Connection::upload(const Request& request, Deadline deadline, const std::function<Result<std::string_view>()>& source) {
  CHECK_OK(send_bytes(cat(head_of(request, authority_), "Transfer-Encoding: chunked\r\n\r\n"), deadline));
  bool whole = false;
  while (!whole && !answered()) {
    TRY(auto bytes, source());
    char size[24];
    ::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    whole = bytes.empty();
    auto sent = send_bytes(size, deadline);
    if (sent) sent = send_bytes(bytes, deadline);
    if (sent) sent = send_bytes("\r\n", deadline);
    if (!sent && sent.error().kind() != Errc::unavailable) return std::move(sent).error();
    if (!sent) break;  // it may have said why before it hung up
  }
  TRY(auto reply, read_head(deadline));
  CHECK_OK(read_body(reply, deadline, [&](std::string_view bytes) {
    reply.body += bytes;
    return reply.body.size() < kMaxHead;
  }));
  if (!whole) reusable_ = false;
  return reply;
}

Result<Reply> Connection::call(const Request& request, Deadline deadline) {
  CHECK_OK(send(request, deadline));
  TRY(auto reply, read_head(deadline));
  bool fits = true;
  Sink keep = [&](std::string_view part) {
    fits = reply.body.size() + part.size() <= kMaxBody;
    if (fits) reply.body += part;
    return fits;
  };
  CHECK_OK(read_body(reply, deadline, keep));
  if (!fits) return Error(Errc::too_large, "the daemon's answer is too large");
  return reply;
}

}  // namespace osb::cli
