#include "execd/proxy_route.h"

#include <memory>

#include "base/text.h"

namespace osb::execd {
namespace {

constexpr auto kConnectDeadline = std::chrono::seconds(5);
constexpr auto kTunnelIdle = std::chrono::hours(24);
constexpr std::size_t kBlock = 32 * 1024;

bool wants_upgrade(const http::Headers& headers) { return headers.has("Upgrade"); }

// Fields named in Connection belong to this hop only, like the standard ones.
bool named_in_connection(const http::Headers& headers, std::string_view name) {
  for (const auto& field : headers.fields()) {
    if (!iequals(field.name, "Connection")) continue;
    for (std::string_view word : split(field.value, ','))
      if (iequals(trim(word), name)) return true;
  }
  return false;
}

// Keys of ours are not for the programs of the sandbox.
bool is_ours(std::string_view name) { return iequals(name, "X-EXECD-ACCESS-TOKEN") || iequals(name, "OPEN-SANDBOX-API-KEY"); }

http::Headers end_to_end(const http::Headers& from) {
  http::Headers headers;
  for (const auto& field : from.fields()) {
    bool framing = iequals(field.name, "Content-Length") || iequals(field.name, "Host");
    if (!framing && !http::is_hop_by_hop(field.name) && !named_in_connection(from, field.name) && !is_ours(field.name))
      headers.add(field.name, field.value);
  }
  return headers;
}

void add_forwarded(http::Headers& headers, const http::Request& request) {
  std::string peer = request.peer == "unix" ? "" : request.peer.substr(0, request.peer.rfind(':'));
  std::string chain(headers.get("X-Forwarded-For"));
  if (!peer.empty()) chain += (chain.empty() ? "" : ", ") + peer;
  if (!chain.empty()) headers.set("X-Forwarded-For", chain);
  if (!headers.has("X-Forwarded-Proto")) headers.set("X-Forwarded-Proto", "http");
  if (!headers.has("X-Forwarded-Host")) headers.set("X-Forwarded-Host", std::string(request.headers.get("Host")));
}

http::ClientRequest outgoing(std::string target, http::Request& request) {
  http::ClientRequest out;
  out.method = request.method;
  out.target = std::move(target);
  out.headers = end_to_end(request.headers);
  add_forwarded(out.headers, request);
  if (wants_upgrade(request.headers)) {
    out.headers.set("Connection", "Upgrade");
    out.headers.set("Upgrade", std::string(request.headers.get("Upgrade")));
  }
  bool has_body = request.body && !request.body->done();
  if (has_body) out.body_source = request.body;
  return out;
}

Task<void> bad_gateway(http::Responder& responder) {
  if (responder.started()) co_return;
  auto response = http::Response::text(502, "Bad Gateway");
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

Task<void> relay_upgrade(http::ClientConnection& backend, http::Headers headers, std::string protocol, http::Responder& responder) {
  headers.set("Upgrade", std::move(protocol));
  auto stream = co_await responder.upgrade(101, std::move(headers));
  if (stream) co_await http::tunnel(**stream, backend.stream(), kTunnelIdle);
}

// A response to HEAD, or without content: only its head goes on, with the length it announces.
Task<void> relay_head(int status, http::Headers headers, std::string length, http::Responder& responder) {
  if (!length.empty()) headers.set("Content-Length", std::move(length));
  http::Response response{status, std::move(headers), {}};
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

Task<void> relay_body(http::ClientConnection& backend, int status, http::Headers headers, http::Responder& responder) {
  if (auto length = backend.body().content_length()) headers.set("Content-Length", cat(*length));
  auto sent = co_await responder.begin(status, std::move(headers));
  std::string block(kBlock, '\0');
  while (sent) {
    auto n = co_await backend.body().read_some(block);
    if (!n) co_return;  // the client sees the response cut short
    if (*n == 0) break;
    sent = co_await responder.chunk(std::string_view(block).substr(0, *n));
  }
  if (sent) sent = co_await responder.end();
}

}  // namespace

Task<void> forward_to_port(std::uint16_t port, std::string target, http::Request& request, http::Responder& responder) {
  bool head_only = request.method == "HEAD";
  auto service = http::Target::tcp("127.0.0.1", port);
  auto backend = co_await http::connect(std::move(service), kConnectDeadline);
  if (!backend) co_return co_await bad_gateway(responder);
  auto out = outgoing(std::move(target), request);
  auto head = co_await (*backend)->start(std::move(out));
  if (!head) co_return co_await bad_gateway(responder);
  auto headers = end_to_end(head->headers);
  if (head->status == 101) {
    std::string protocol(head->headers.get("Upgrade"));
    co_return co_await relay_upgrade(**backend, std::move(headers), std::move(protocol), responder);
  }
  if (head_only || head->status == 204 || head->status == 304) {
    std::string length(head->headers.get("Content-Length"));
    co_return co_await relay_head(head->status, std::move(headers), std::move(length), responder);
  }
  co_await relay_body(**backend, head->status, std::move(headers), responder);
}

}  // namespace osb::execd
