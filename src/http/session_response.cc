#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "base/text.h"
#include "http/head_writer.h"
#include "http/session.h"

namespace osb::http {
namespace {

constexpr std::size_t kDrainBytes = 64 * 1024;
constexpr std::size_t kHeadReserve = 256;
constexpr std::size_t kFileBlock = 64 * 1024;

Error out_of_order(std::string_view call) { return Error(Errc::internal, cat(call, " at the wrong moment of a response")); }

// A body length the handler knows: of a streamed body, or of the one a HEAD response leaves out.
std::optional<std::uint64_t> announced_length(const Headers& headers) {
  if (headers.count("Content-Length") != 1) return std::nullopt;
  return parse_int<std::uint64_t>(headers.get("Content-Length"));
}

bool asks_to_close(const Headers& headers) {
  for (const auto& field : headers.fields())
    if (iequals(field.name, "Connection") && iequals(trim(field.value), "close")) return true;
  return false;
}

bool has_no_body(int status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

void Session::choose_persistence(const Headers& headers) {
  if (retiring_ || asks_to_close(headers) || !body_.may_drain(kDrainBytes)) keep_alive_ = false;
  body_.withdraw_continue();  // a final status has taken its place
}

bool Session::render(std::string& out, const Response& response) const {
  ResponseHead head{.status = response.status, .headers = response.headers, .request_id = request_.request_id, .length = {}};
  if (!has_no_body(response.status)) head.length = response.body.size();
  bool bodiless = head_only_ || response.status == 304;
  if (bodiless && response.body.empty()) head.length = announced_length(response.headers);
  head.close = !keep_alive_;
  out.reserve(kHeadReserve);
  return response.status >= 200 && append_head(out, head);
}

Task<Result<>> Session::send(Response response) {
  if (phase_ != Phase::fresh) co_return out_of_order("send");
  choose_persistence(response.headers);
  std::string head;
  if (!render(head, response)) co_return co_await replace_response();
  phase_ = Phase::finished;
  std::string_view body = head_only_ || has_no_body(response.status) ? std::string_view{} : response.body;
  Socket::Parts parts{head, body};
  auto written = co_await socket_.write_parts(parts);
  if (!written) keep_alive_ = false;
  co_return written;
}

// A header that would break the response never leaves; the client learns that we failed, not what was in it.
Task<Result<>> Session::replace_response() {
  log::error("response refused: a header or the status cannot be sent", {{"request_id", request_.request_id}, {"path", request_.path}});
  auto response = Response::json(500, error_json("GENERAL::UNKNOWN_ERROR", "the server made a response that cannot be sent"));
  auto sent = co_await send(std::move(response));
  if (!sent) co_return sent;
  co_return Error(Errc::internal, "the response has a header or a status that cannot be sent");
}

bool Session::render_streamed(std::string& out, int status, const Headers& headers) {
  ResponseHead head{.status = status, .headers = headers, .request_id = request_.request_id, .length = {}};
  if (!has_no_body(status)) head.length = left_ = announced_length(headers);
  // Before 1.1 only the end of the connection can end a body of unknown length.
  chunked_ = !has_no_body(status) && !head.length && info_.version == 11;
  if (!chunked_ && !head.length && !has_no_body(status)) keep_alive_ = false;
  head.chunked = chunked_;
  head.close = !keep_alive_;
  if (has_no_body(status)) head_only_ = true;
  out.reserve(kHeadReserve);
  return status >= 200 && append_head(out, head);
}

Task<Result<>> Session::begin(int status, Headers headers, std::string_view first) {
  if (phase_ != Phase::fresh) co_return out_of_order("begin");
  choose_persistence(headers);
  std::string out;
  bool rendered = render_streamed(out, status, headers);
  if (head_only_) first = {};
  if (!rendered || (left_ && first.size() > *left_)) co_return co_await replace_response();
  phase_ = Phase::streaming;
  if (left_) *left_ -= first.size();
  bool framed = chunked_ && !first.empty();
  if (framed) append_chunk_size(out, first.size());
  Socket::Parts parts{out, first, framed ? "\r\n" : ""};
  auto written = co_await socket_.write_parts(parts);
  if (!written) keep_alive_ = false;
  co_return written;
}

Task<Result<>> Session::chunk(std::string_view bytes) {
  if (phase_ != Phase::streaming) co_return out_of_order("chunk");
  // An empty chunk would end the body.
  if (bytes.empty() || head_only_) co_return Ok{};
  if (left_ && bytes.size() > *left_) co_return out_of_order("more bytes than Content-Length");
  if (left_) *left_ -= bytes.size();
  std::string size;
  if (chunked_) append_chunk_size(size, bytes.size());
  Socket::Parts parts{size, bytes, chunked_ ? "\r\n" : ""};
  auto written = co_await socket_.write_parts(parts);
  if (!written) keep_alive_ = false;
  co_return written;
}

Task<Result<>> Session::send_file(int fd, std::uint64_t offset, std::uint64_t length) {
  if (phase_ != Phase::streaming) co_return out_of_order("send_file");
  if (head_only_) co_return Ok{};
  if (!left_) co_return co_await Responder::send_file(fd, offset, length);
  if (length > *left_) co_return out_of_order("more bytes than Content-Length");
  *left_ -= length;
  auto written = co_await socket_.write_file(fd, offset, length);
  if (!written) keep_alive_ = false;
  co_return written;
}

// Without a length each piece needs its own frame.
Task<Result<>> Responder::send_file(int fd, std::uint64_t offset, std::uint64_t length) {
  auto block = std::make_unique_for_overwrite<char[]>(kFileBlock);
  while (length > 0) {
    auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(length, kFileBlock));
    auto got = ::pread(fd, block.get(), wanted, static_cast<off_t>(offset));
    if (got <= 0) co_return Error(Errc::unavailable, "the file ends before what was announced");
    std::string_view bytes(block.get(), static_cast<std::size_t>(got));
    auto sent = co_await chunk(bytes);
    if (!sent) co_return sent;
    offset += static_cast<std::uint64_t>(got);
    length -= static_cast<std::uint64_t>(got);
  }
  co_return Ok{};
}

Task<Result<>> Session::end() {
  if (phase_ != Phase::streaming) co_return out_of_order("end");
  if (left_ && *left_ > 0 && !head_only_) co_return out_of_order("fewer bytes than Content-Length");
  phase_ = Phase::finished;
  if (!chunked_ || head_only_) co_return Ok{};
  auto written = co_await socket_.write_all("0\r\n\r\n");
  if (!written) keep_alive_ = false;
  co_return written;
}

Task<Result<Stream*>> Session::upgrade(int status, Headers headers) {
  if (phase_ != Phase::fresh) co_return out_of_order("upgrade");
  if (!body_.done()) co_return Error(Errc::internal, "the request body must be read before the stream is handed over");
  ResponseHead head{.status = status, .headers = headers, .request_id = request_.request_id, .length = {}};
  head.upgrade = status == 101;
  head.close = status != 101;
  std::string out;
  keep_alive_ = false;
  if (!append_head(out, head)) {
    auto replaced = co_await replace_response();
    co_return std::move(replaced).error();
  }
  phase_ = Phase::upgraded;
  auto written = co_await socket_.write_all(out);
  if (!written) co_return std::move(written).error();
  socket_.set_read_stall({});
  co_return &socket_;
}

}  // namespace osb::http
