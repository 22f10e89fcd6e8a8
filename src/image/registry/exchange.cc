#include "image/registry/exchange.h"

#include "base/text.h"
#include "http/head_writer.h"

namespace osb::image::registry {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr int kInterimResponses = 8;

Error broken(std::string_view what) { return Error(Errc::unavailable, cat("the registry broke the protocol: ", what)); }

}  // namespace

Result<std::unique_ptr<Exchange>> Exchange::get(std::unique_ptr<Connection> connection, const Url& url, const http::Headers& headers) {
  std::unique_ptr<Exchange> exchange(new Exchange(std::move(connection)));
  std::string host = url.origin.authority();
  http::RequestHead head{.method = "GET", .target = url.target, .default_host = host, .headers = headers, .length = {}};
  std::string out;
  if (!http::append_head(out, head)) return Error(Errc::invalid_argument, "the request has a target or header that cannot be sent");
  CHECK_OK(exchange->connection_->write(out));
  CHECK_OK(exchange->receive_head());
  return exchange;
}

Result<bool> Exchange::fill() {
  pending_.erase(0, pending_at_);
  pending_at_ = 0;
  std::size_t before = pending_.size();
  pending_.resize(before + kReadBytes);
  auto got = connection_->read(std::span(pending_).subspan(before));
  pending_.resize(before + (got ? *got : 0));
  if (!got) return std::move(got).error();
  return *got > 0;
}

Result<> Exchange::receive_head() {
  for (int i = 0; i < kInterimResponses; ++i) {
    http::Gate gate(http::kResponseGate);
    while (!gate.done()) {
      if (auto refusal = gate.scan(std::string_view(pending_).substr(pending_at_))) return broken(refusal.message);
      if (gate.done()) break;
      TRY(bool more, fill());
      if (!more) return Error(Errc::unavailable, "the registry closed the connection without an answer");
    }
    http::MessageInfo info;
    head_ = {};
    std::string_view bytes = std::string_view(pending_).substr(pending_at_, gate.head_bytes());
    if (auto refusal = http::parse_response_head(bytes, "GET", head_, info)) return broken(refusal.message);
    pending_at_ += gate.head_bytes();
    if (head_.status == 101) return broken("it switched protocols without being asked");
    if (head_.status < 200) continue;
    body_ = http::BodyDecoder(info.framing);
    return Ok{};
  }
  return broken("too many interim responses");
}

std::optional<std::uint64_t> Exchange::content_length() const {
  if (body_.framing().kind == http::Framing::Kind::length) return body_.framing().length;
  return body_.framing().kind == http::Framing::Kind::none ? std::optional<std::uint64_t>(0) : std::nullopt;
}

Result<std::size_t> Exchange::read(std::span<char> into) {
  while (!body_.done()) {
    auto step = body_.decode(std::string_view(pending_).substr(pending_at_), into.data(), into.size());
    pending_at_ += step.consumed;
    if (body_.failed()) return broken(body_.problem());
    if (step.produced > 0) return step.produced;
    if (body_.done()) break;
    TRY(bool more, fill());
    if (more) continue;
    body_.end_of_stream();
    if (body_.failed()) return Error(Errc::unavailable, "the connection was cut in the middle of a body");
  }
  return std::size_t{0};
}

Result<std::string> Exchange::read_all(std::size_t limit) {
  if (auto length = content_length(); length && *length > limit)
    return Error(Errc::too_large, cat("the registry sends a document of ", *length, " bytes; at most ", limit, " are read"));
  std::string out;
  std::string piece(kReadBytes, '\0');
  while (true) {
    TRY(auto got, read(piece));
    if (got == 0) return out;
    if (got > limit - out.size()) return Error(Errc::too_large, cat("the registry sends a document of more than ", limit, " bytes"));
    out.append(piece, 0, got);
  }
}

}  // namespace osb::image::registry
