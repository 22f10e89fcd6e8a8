#include "api/sessions/event_stream.h"

#include "api/sessions/render.h"
#include "base/text.h"

namespace osb::api::sessions {
namespace {

constexpr auto kLongSilence = std::chrono::seconds(14);  // proxies on the way give up after thirty seconds or more

http::Headers stream_headers(http::Headers extra) {
  extra.add("Content-Type", "text/event-stream");
  extra.add("Cache-Control", "no-cache");
  extra.add("X-Accel-Buffering", "no");
  return extra;
}

}  // namespace

Task<Result<>> EventStream::write(std::string text) {
  Result<> sent = Ok{};
  if (begun_) {
    sent = co_await responder_.chunk(text);
  } else {
    begun_ = true;
    auto headers = stream_headers(std::move(extra_));
    sent = co_await responder_.begin(200, std::move(headers), text);
  }
  written_ = std::chrono::steady_clock::now();
  gone_ = !sent;
  co_return sent;
}

Task<Result<>> EventStream::take(session::ExecEvent event) {
  auto text = cat("event: ", event_name(event), "\n");
  if (event.seq > 0) text += cat("id: ", event.seq, "\n");
  text += cat("data: ", event_json(event), "\n\n");
  co_return co_await write(std::move(text));
}

Task<Result<>> EventStream::still() {
  if (std::chrono::steady_clock::now() - written_ < kLongSilence) co_return Ok{};
  co_return co_await write(": still here\n\n");
}

Task<Result<>> EventStream::finish(Result<> done, std::string request_id) {
  if (gone_) co_return Ok{};
  if (!done && !begun_) co_return done;
  if (!done) {
    auto last = cat("event: error\ndata: {\"type\":\"error\",\"seq\":0,\"error\":", error_json(done.error(), request_id), "}\n\n");
    auto told = co_await write(std::move(last));
    if (!told) co_return Ok{};
  }
  if (!begun_) {
    auto begun = co_await write(": nothing\n\n");
    if (!begun) co_return Ok{};
  }
  co_return co_await responder_.end();
}

}  // namespace osb::api::sessions
