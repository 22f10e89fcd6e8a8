#include "image/registry/connection.h"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace osb::image::registry {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSlice = std::chrono::milliseconds(200);

Error gone(std::string what) { return Error(Errc::unavailable, std::move(what)); }
Error stopped() { return Error(Errc::conflict, "the pull was cancelled").with_code("SANDBOX::IMAGE_PULL_CANCELLED"); }

struct Addresses {
  explicit Addresses(addrinfo* list) : head(list, ::freeaddrinfo) {}
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> head;
};

Result<Addresses> resolve(const Origin& origin) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  int failed = ::getaddrinfo(origin.host.c_str(), cat(origin.port).c_str(), &hints, &list);
  if (failed == 0) return Addresses(list);
  bool unknown = failed == EAI_NONAME || failed == EAI_NODATA;
  return Error(unknown ? Errc::not_found : Errc::unavailable, cat("cannot find the host ", origin.host, ": ", ::gai_strerror(failed)));
}

Result<> wait_for(int fd, short events, Clock::time_point until, const std::stop_token& stop) {
  while (true) {
    if (stop.stop_requested()) return stopped();
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return Error(Errc::timeout, "the registry does not answer");
    pollfd one{fd, events, 0};
    int ready = ::poll(&one, 1, static_cast<int>(std::min(left, kSlice).count()) + 1);
    if (ready > 0) return Ok{};
    if (ready < 0 && errno != EINTR) return Error::from_errno("poll", errno);
  }
}

Result<Fd> dial(const addrinfo& address, const Origin& origin, const DialOptions& options) {
  Fd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::from_errno("socket", errno);
  auto failed = [&](int sys) { return Error::from_errno(cat("connect to ", origin.authority()), sys, Errc::unavailable); };
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return failed(errno);
  CHECK_OK(wait_for(fd.get(), POLLOUT, Clock::now() + options.connect, options.stop));
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return failed(error);
  return fd;
}

std::string tls_reason() {
  unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return reason == nullptr ? "the connection was cut" : reason;
}

}  // namespace

Trust::Trust(ssl_ctx_st* context) : context_(context, ::SSL_CTX_free) {}

Result<std::shared_ptr<Trust>> Trust::load(const std::string& ca_file) {
  std::shared_ptr<Trust> trust(new Trust(::SSL_CTX_new(::TLS_client_method())));
  SSL_CTX* context = trust->context();
  if (context == nullptr) return Error(Errc::internal, cat("TLS: ", tls_reason()));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  // A connection that is cut is told apart from one that was ended by the framing of HTTP, not by TLS.
  ::SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (::SSL_CTX_set_default_verify_paths(context) != 1) return Error(Errc::internal, cat("system certificates: ", tls_reason()));
  if (!ca_file.empty() && ::SSL_CTX_load_verify_file(context, ca_file.c_str()) != 1)
    return Error(Errc::invalid_argument, cat("images.ca_file ", ca_file, ": ", tls_reason()));
  return trust;
}

Connection::Connection(Fd fd, Reach reach, const DialOptions& options)
    : fd_(std::move(fd)), reach_(reach), stop_(options.stop), stall_(options.stall), until_(options.until), tls_(nullptr, ::SSL_free) {}

Connection::~Connection() {
  if (tls_) ::ERR_clear_error();
}

Result<std::unique_ptr<Connection>> Connection::open(const Origin& origin, const DialOptions& options) {
  if (options.stop.stop_requested()) return stopped();
  TRY(auto addresses, resolve(origin));
  Error last = gone(cat("the host ", origin.host, " has no address"));
  for (const addrinfo* at = addresses.head.get(); at != nullptr; at = at->ai_next) {
    Reach reach = reach_of(at->ai_addr);
    // One forbidden address condemns the name: a mixture of open and private answers is how rebinding looks.
    CHECK_OK(check_reach(reach, options.from, options.first, origin, options.registries));
    auto fd = dial(*at, origin, options);
    if (!fd && options.stop.stop_requested()) return stopped();
    if (!fd) {
      last = std::move(fd).error();
      continue;
    }
    std::unique_ptr<Connection> made(new Connection(*std::move(fd), reach, options));
    if (origin.tls) CHECK_OK(made->start_tls(origin, options.trust));
    return made;
  }
  return last;
}

Result<> Connection::start_tls(const Origin& origin, const Trust& trust) {
  tls_.reset(::SSL_new(trust.context()));
  if (!tls_ || ::SSL_set_fd(tls_.get(), fd_.get()) != 1) return Error(Errc::internal, cat("TLS: ", tls_reason()));
  bool named = is_address(origin.host) ? ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(tls_.get()), origin.host.c_str()) == 1
                                       : ::SSL_set1_host(tls_.get(), origin.host.c_str()) == 1 &&
                                             SSL_set_tlsext_host_name(tls_.get(), origin.host.c_str()) == 1;
  if (!named) return Error(Errc::internal, cat("TLS: ", tls_reason()));
  while (true) {
    int outcome = ::SSL_connect(tls_.get());
    if (outcome == 1) return Ok{};
    if (long verdict = ::SSL_get_verify_result(tls_.get()); verdict != X509_V_OK) {
      ::ERR_clear_error();
      return Error(Errc::permission_denied,
                   cat("the certificate of ", origin.authority(), " is not trusted: ", ::X509_verify_cert_error_string(verdict)))
          .with_code("SANDBOX::IMAGE_PULL_REFUSED")
          .with_hint("add the registry's CA with images.ca_file");
    }
    if (auto waited = wait_tls(outcome, "TLS handshake"); !waited) return std::move(waited).error().in(origin.authority());
  }
}

Result<> Connection::wait(short events) { return wait_for(fd_.get(), events, std::min(Clock::now() + stall_, until_), stop_); }

Result<> Connection::wait_tls(int outcome, std::string_view doing) {
  switch (::SSL_get_error(tls_.get(), outcome)) {
    case SSL_ERROR_WANT_READ: return wait(POLLIN);
    case SSL_ERROR_WANT_WRITE: return wait(POLLOUT);
    default: return gone(cat(doing, ": ", tls_reason()));
  }
}

Result<> Connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (tls_) {
      int n = ::SSL_write(tls_.get(), bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20)));
      if (n <= 0) CHECK_OK(wait_tls(n, "send"));
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    auto n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    if (n >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return Error::from_errno("send", errno, Errc::unavailable);
    CHECK_OK(wait(POLLOUT));
  }
  return Ok{};
}

Result<std::size_t> Connection::read(std::span<char> into) {
  while (true) {
    if (stop_.stop_requested()) return stopped();
    if (Clock::now() > until_) return Error(Errc::timeout, "the pull takes longer than two hours");
    if (tls_) {
      int n = ::SSL_read(tls_.get(), into.data(), static_cast<int>(std::min<std::size_t>(into.size(), 1 << 20)));
      if (n > 0) return static_cast<std::size_t>(n);
      if (::SSL_get_error(tls_.get(), n) == SSL_ERROR_ZERO_RETURN) return std::size_t{0};
      CHECK_OK(wait_tls(n, "receive"));
      continue;
    }
    auto n = ::recv(fd_.get(), into.data(), into.size(), 0);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Error::from_errno("receive", errno, Errc::unavailable);
    CHECK_OK(wait(POLLIN));
  }
}

}  // namespace osb::image::registry
