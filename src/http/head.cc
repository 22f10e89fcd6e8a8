#include "http/head.h"

#include <boost/beast/http/basic_parser.hpp>

#include "base/id.h"
#include "base/text.h"

namespace osb::http {
namespace {

namespace bh = boost::beast::http;
using BeastView = boost::beast::string_view;
using BeastError = boost::beast::error_code;

constexpr Refusal refuse(std::string_view message) { return {400, "BAD_REQUEST", message}; }
constexpr std::size_t kMethodBytes = 32;
constexpr std::size_t kRequestIdBytes = 128;

std::string_view view(BeastView text) { return {text.data(), text.size()}; }

// The fields that decide framing, counted and remembered as they come.
struct FramingFields {
  int lengths = 0;
  int encodings = 0;
  int hosts = 0;
  int expectations = 0;
  std::string_view length;
  std::string_view encoding;
  std::string_view host;
  std::string_view expectation;

  void note(bh::field field, std::string_view value) {
    if (field == bh::field::content_length) ++lengths, length = value;
    if (field == bh::field::transfer_encoding) ++encodings, encoding = value;
    if (field == bh::field::host) ++hosts, host = value;
    if (field == bh::field::expect) ++expectations, expectation = value;
  }
};

// Beast's parser with its callbacks pointed at our fields; the body never passes through it.
template <bool IsRequest>
class HeadParser final : public bh::basic_parser<IsRequest> {
 public:
  explicit HeadParser(Headers& headers) : headers_(headers) {
    this->header_limit(1u << 20);  // the gate has already measured the head
    this->body_limit(boost::none);
  }
  bool parse(std::string_view head) {
    BeastError error;
    auto used = this->put(boost::asio::const_buffer(head.data(), head.size()), error);
    return !error && used == head.size() && this->is_header_done();
  }
  std::string_view method;
  std::string_view target;
  int version = 0;
  int status = 0;
  FramingFields seen;

 private:
  void on_request_impl(bh::verb, BeastView m, BeastView t, int v, BeastError&) override {
    method = view(m);
    target = view(t);
    version = v;
  }
  void on_response_impl(int code, BeastView, int v, BeastError&) override {
    status = code;
    version = v;
  }
  void on_field_impl(bh::field field, BeastView name, BeastView value, BeastError&) override {
    headers_.add(std::string(view(name)), std::string(view(value)));
    seen.note(field, view(value));
  }
  void on_header_impl(BeastError&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  std::size_t on_body_impl(BeastView body, BeastError&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, BeastView, BeastError&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastView body, BeastError&) override { return body.size(); }
  void on_finish_impl(BeastError&) override {}

  Headers& headers_;
};

bool is_host_text(std::string_view host) {
  for (char c : host) {
    char l = lower(c);
    bool good = (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || std::string_view(".-_:[]%~").find(c) != std::string_view::npos;
    if (!good) return false;
  }
  return true;
}

Refusal check_target(std::string_view target, const Limits& limits) {
  if (target.size() > limits.target_bytes) return {414, "URI_TOO_LONG", "the request target is too long"};
  if (target.empty() || target[0] != '/') return refuse("only targets of the form '/path?query' are served");
  for (char c : target)
    if (c <= 0x20 || c >= 0x7f || c == '#') return refuse("the request target has a character that must be percent-encoded");
  return {};
}

bool is_request_id(std::string_view id) {
  if (id.empty() || id.size() > kRequestIdBytes) return false;
  for (char c : id) {
    char l = lower(c);
    bool good = (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == ':' || c == '-';
    if (!good) return false;
  }
  return true;
}

void choose_request_id(Request& request) {
  auto sent = request.headers.get("X-Request-ID");
  request.request_id = is_request_id(sent) ? std::string(sent) : new_request_id();
}

// Digits only: a sign, a list or spaces are read differently by different programs.
std::optional<std::uint64_t> parse_length(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  return parse_int<std::uint64_t>(text);
}

// Common to both directions: at most one of Content-Length and Transfer-Encoding, each in its one plain form.
Refusal work_out_framing(const FramingFields& seen, int version, Framing& framing) {
  if (seen.lengths > 1) return refuse("more than one Content-Length");
  if (seen.encodings > 1) return refuse("more than one Transfer-Encoding");
  if (seen.encodings == 1 && seen.lengths == 1) return refuse("both Content-Length and Transfer-Encoding");
  if (seen.encodings == 1) {
    if (version != 11) return refuse("Transfer-Encoding needs HTTP/1.1");
    if (!iequals(seen.encoding, "chunked")) return refuse("the only Transfer-Encoding is 'chunked'");
    framing.kind = Framing::Kind::chunked;
  } else if (seen.lengths == 1) {
    auto length = parse_length(seen.length);
    if (!length) return refuse("Content-Length is not a plain number");
    framing = {Framing::Kind::length, *length};
  }
  return {};
}

template <bool IsRequest>
Refusal compare_with_beast(const HeadParser<IsRequest>& parser, const Framing& framing) {
  bool chunked = framing.kind == Framing::Kind::chunked;
  if (parser.chunked() != chunked) return refuse("the framing of the message is ambiguous");
  auto length = parser.content_length();
  bool has_length = framing.kind == Framing::Kind::length;
  if (length.has_value() != has_length || (has_length && *length != framing.length))
    return refuse("the framing of the message is ambiguous");
  return {};
}

Refusal check_request(const HeadParser<true>& parser, const Limits& limits, MessageInfo& info) {
  if (parser.method.size() > kMethodBytes) return refuse("the method is too long");
  if (auto refusal = check_target(parser.target, limits)) return refusal;
  const auto& seen = parser.seen;
  if (seen.hosts > 1 || (seen.hosts == 0 && parser.version == 11)) return refuse("exactly one Host header is needed");
  if (!is_host_text(seen.host)) return refuse("the Host header is malformed");
  if (auto refusal = work_out_framing(seen, parser.version, info.framing)) return refusal;
  if (auto refusal = compare_with_beast(parser, info.framing)) return refusal;
  if (seen.expectations == 0 || parser.version != 11) return {};
  if (seen.expectations > 1 || !iequals(seen.expectation, "100-continue"))
    return {417, "EXPECTATION_FAILED", "the only expectation understood is 100-continue"};
  info.expect_continue = info.framing.kind == Framing::Kind::chunked || info.framing.length > 0;
  return {};
}

Refusal frame_response(const HeadParser<false>& parser, std::string_view method, MessageInfo& info) {
  if (auto refusal = work_out_framing(parser.seen, parser.version, info.framing)) return refusal;
  if (parser.chunked() != (info.framing.kind == Framing::Kind::chunked)) return refuse("the framing of the message is ambiguous");
  bool never_a_body = parser.status < 200 || parser.status == 204;
  bool some_body = info.framing.kind == Framing::Kind::chunked || info.framing.length > 0;
  if (never_a_body && some_body) return refuse("a response that cannot have a body announces one");
  if (never_a_body || parser.status == 304 || method == "HEAD") {
    info.framing = {};
  } else if (info.framing.kind == Framing::Kind::none) {
    info.framing.kind = Framing::Kind::until_close;
  }
  return {};
}

}  // namespace

GateLimits gate_limits(const Limits& limits) {
  // Room for the longest method and the version beside the target.
  return {limits.header_bytes, limits.header_fields, limits.target_bytes + kMethodBytes + 16};
}

Refusal parse_request_head(std::string_view head, const Limits& limits, Request& request, MessageInfo& info) {
  HeadParser<true> parser(request.headers);
  bool parsed = parser.parse(head);
  choose_request_id(request);
  if (!parsed) return refuse("the request head is malformed");
  info.version = parser.version;
  if (auto refusal = check_request(parser, limits, info)) return refusal;
  info.keep_alive = parser.version == 11 && parser.keep_alive();
  request.method = parser.method;
  request.target = parser.target;
  auto mark = parser.target.find('?');
  request.path = parser.target.substr(0, mark);
  request.query = mark == std::string_view::npos ? std::string_view{} : parser.target.substr(mark + 1);
  return {};
}

Refusal parse_response_head(std::string_view head, std::string_view method, ClientConnection::Head& response, MessageInfo& info) {
  HeadParser<false> parser(response.headers);
  if (!parser.parse(head)) return refuse("the response head is malformed");
  if (parser.status < 100 || parser.status > 599) return refuse("the status code is out of range");
  response.status = parser.status;
  info.version = parser.version;
  if (auto refusal = frame_response(parser, method, info)) return refusal;
  info.keep_alive = parser.version == 11 && info.framing.kind != Framing::Kind::until_close && parser.keep_alive();
  return {};
}

std::string new_request_id() {
  // One getrandom(2) serves many requests: ids need to be distinct, not secret.
  constexpr std::size_t kDigits = 32;
  thread_local std::string stock;
  if (stock.size() < kDigits) stock = random_hex(kDigits / 2 * 64);
  auto id = stock.substr(stock.size() - kDigits);
  stock.resize(stock.size() - kDigits);
  return id;
}

}  // namespace osb::http
