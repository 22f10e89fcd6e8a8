#include "api/connect/streams.h"

#include "api/rpc/json_form.h"
#include "base/base64.h"
#include "base/text.h"

namespace osb::api::connect {
namespace {

constexpr std::size_t kBlock = 32 * 1024;

Error cut_off() { return Error(Errc::malformed, "The body ends in the middle of a message.").with_code("GENERAL::MALFORMED"); }

using Next = Result<std::optional<std::string>>;

}  // namespace

Task<Next> WholeIn::next() { co_return std::exchange(message_, std::nullopt); }

FramesIn::FramesIn(std::string bytes) : unpacker_(rpc::kMaxRequestBytes) { unpacker_.feed(bytes); }

Task<Next> FramesIn::next() {
  CO_TRY(auto envelope, unpacker_.next());
  if (!envelope && !unpacker_.empty()) co_return cut_off();
  if (!envelope || (envelope->flags & kEndOfStream) != 0) co_return std::optional<std::string>();
  co_return std::optional(std::move(envelope->bytes));
}

BodyIn::BodyIn(http::BodyReader& body)
    : body_(body), unpacker_(rpc::kMaxRequestBytes), block_(std::make_unique_for_overwrite<char[]>(kBlock)) {}

Task<Next> BodyIn::next() {
  for (;;) {
    CO_TRY(auto envelope, unpacker_.next());
    if (envelope && (envelope->flags & kEndOfStream) != 0) co_return std::optional<std::string>();
    if (envelope) co_return std::optional(std::move(envelope->bytes));
    auto got = co_await body_.read_some(std::span(block_.get(), kBlock));
    if (!got) co_return std::move(got).error();
    if (*got == 0 && !unpacker_.empty()) co_return cut_off();
    if (*got == 0) co_return std::optional<std::string>();
    unpacker_.feed({block_.get(), *got});
  }
}

Task<Result<>> KeptOut::send(std::string bytes) {
  message = std::move(bytes);
  co_return Ok{};
}

FramedOut::FramedOut(http::Responder& responder, const Protocol& protocol, http::Headers headers)
    : responder_(responder), protocol_(protocol), headers_(std::move(headers)) {
  headers_.add("Content-Type", protocol_.content_type);
  headers_.add("Cache-Control", "no-cache");
}

Task<Result<>> FramedOut::write(std::string frame) {
  if (protocol_.kind == Kind::grpc_web_text) frame = base64(frame);
  if (responder_.started()) co_return co_await responder_.chunk(frame);
  co_return co_await responder_.begin(200, std::move(headers_), frame);
}

Task<Result<>> FramedOut::send(std::string message) {
  auto frame = pack(0, message);
  co_return co_await write(std::move(frame));
}

Task<void> FramedOut::finish(rpc::Status status) {
  auto frame = end_frame(protocol_, status);
  auto sent = co_await write(std::move(frame));
  if (sent) [[maybe_unused]]
    auto ended = co_await responder_.end();
}

std::string trailer_lines(const rpc::Status& status) {
  std::string lines;
  for (const auto& [name, value] : rpc::trailers(status)) lines += cat(name, ": ", value, "\r\n");
  return lines;
}

std::string end_frame(const Protocol& protocol, const rpc::Status& status) {
  if (protocol.web()) return pack(kTrailers, trailer_lines(status));
  if (status.code == rpc::Code::ok) return pack(kEndOfStream, "{}");
  return pack(kEndOfStream, cat("{\"error\":", rpc::connect_error(status), "}"));
}

}  // namespace osb::api::connect
