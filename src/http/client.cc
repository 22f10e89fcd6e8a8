#include "http/client.h"

#include <array>

#include "base/text.h"
#include "http/head_writer.h"

namespace osb::http {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kLargeBytes = 256 * 1024;  // of a body that is long, or may be: fewer calls for each byte
constexpr int kInterimResponses = 8;
constexpr auto kWriteStall = std::chrono::seconds(60);

Error broken(std::string_view what) { return Error(Errc::unavailable, cat("the server broke the protocol: ", what)); }

bool wants_length(std::string_view method) { return method == "POST" || method == "PUT" || method == "PATCH"; }

}  // namespace

Client::Client(Executor executor, Fd fd, std::string host)
    : socket_(executor, std::move(fd)), body_(socket_), gate_(kResponseGate), host_(std::move(host)) {
  socket_.set_write_stall(kWriteStall);
}

bool Client::reusable() const {
  // Bytes nobody asked for would be taken for the answer to the next request.
  return sound_ && body_.done() && socket_.quiet();
}

void Client::limit_to(Socket::Clock::time_point moment) {
  socket_.set_read_limit(moment);
  socket_.set_write_limit(moment);
}

Task<Result<ClientConnection::Head>> Client::start(ClientRequest request) {
  if (used_ && !reusable()) co_return Error(Errc::unavailable, "the connection cannot carry another request");
  used_ = true;
  sound_ = false;
  method_ = request.method;
  upgrading_ = request.headers.has("Upgrade");
  std::string out;
  auto* source = request.body_source;
  CO_TRY(bool chunked, render(out, request));
  std::string_view body = source ? std::string_view{} : std::string_view(request.body);
  Socket::Parts parts{out, body};
  auto sent = co_await socket_.write_parts(parts);
  bool complete = static_cast<bool>(sent);
  if (sent && source) {
    auto streamed = co_await stream_body(*source, chunked);
    if (!streamed) co_return std::move(streamed).error();
    complete = *streamed;
  }
  // A server may answer and hang up without reading all of the request: its answer still counts.
  auto head = co_await receive();
  if (!head && !sent) co_return std::move(sent).error();
  if (head) sound_ = complete && info_.keep_alive && head->status != 101;
  co_return head;
}

// Whether the body is chunked.
Result<bool> Client::render(std::string& out, const ClientRequest& request) const {
  RequestHead head{.method = request.method, .target = request.target, .default_host = host_, .headers = request.headers, .length = {}};
  if (request.body_source) {
    head.length = request.body_source->content_length();
    head.chunked = !head.length;
  } else {
    head.length = request.body.size();
  }
  if (head.length == 0 && !wants_length(request.method)) head.length.reset();
  out.reserve(512);
  if (!append_head(out, head)) return Error(Errc::invalid_argument, "the request has a method, target or header that cannot be sent");
  return head.chunked;
}

// True when all of it left; false when the server answered or hung up before. An Error is that of the source.
Task<Result<bool>> Client::stream_body(BodyReader& source, bool chunked) {
  auto length = source.content_length();
  std::size_t room = length && *length <= kReadBytes ? kReadBytes : kLargeBytes;
  if (room == kLargeBytes) socket_.expect_bulk();
  auto buffer = std::make_unique_for_overwrite<char[]>(room);
  std::string size;
  while (!source.done()) {
    auto got = co_await source.read_some(std::span(buffer.get(), room));
    if (!got) {
      socket_.close();
      co_return std::move(got).error();
    }
    if (*got == 0) break;
    if (!socket_.quiet()) co_return false;
    size.clear();
    if (chunked) append_chunk_size(size, *got);
    Socket::Parts parts{size, std::string_view(buffer.get(), *got), chunked ? "\r\n" : ""};
    auto sent = co_await socket_.write_parts(parts);
    if (!sent) co_return false;
  }
  if (!chunked) co_return true;
  auto sent = co_await socket_.write_all("0\r\n\r\n");
  co_return static_cast<bool>(sent);
}

// The final head; interim ones are read and dropped.
Task<Result<ClientConnection::Head>> Client::receive() {
  for (int i = 0; i < kInterimResponses; ++i) {
    CO_TRY(auto head, co_await receive_one());
    if (head.status == 101 && !upgrading_) co_return broken("it switched protocols without being asked");
    if (head.status < 200 && head.status != 101) continue;
    body_.start(info_.framing, false);
    co_return head;
  }
  co_return broken("too many interim responses");
}

Task<Result<ClientConnection::Head>> Client::receive_one() {
  gate_.reset();
  info_ = {};
  Head head;
  for (;;) {
    CO_TRY(bool complete, digest(head));
    if (complete) co_return head;
    auto ready = co_await socket_.wait_readable();
    if (!ready) co_return std::move(ready).error();
    CO_TRY(bool more, intake());
    if (more) continue;
    co_return Error(Errc::unavailable, socket_.pending().empty() ? "the server closed the connection without an answer"
                                                                 : "the server closed the connection inside a response head");
  }
}

// Reads what is there into the look-ahead; false at the end of the stream.
Result<bool> Client::intake() {
  std::array<char, kReadBytes> scratch;
  TRY(auto got, socket_.try_read(scratch));
  if (got) socket_.unread(std::string_view(scratch.data(), *got));
  return !got || *got > 0;
}

Result<bool> Client::digest(Head& head) {
  auto bytes = socket_.pending();
  auto refusal = gate_.scan(bytes);
  if (!refusal && !gate_.done()) return false;
  if (!refusal) refusal = parse_response_head(bytes.substr(0, gate_.head_bytes()), method_, head, info_);
  if (refusal) {
    socket_.close();
    return broken(refusal.message);
  }
  socket_.consume(gate_.head_bytes());
  return true;
}

}  // namespace osb::http
