#include "execd/runs/follow.h"

#include "execd/events.h"
#include "execd/replies.h"

namespace osb::execd::runs {
namespace {

using Clock = Run::Clock;
constexpr auto kPingEvery = std::chrono::seconds(3);

// The response under way: its head leaves with the first events.
class EventWriter {
 public:
  explicit EventWriter(http::Responder& responder) : responder_(responder) {}

  Task<Result<>> send(std::string_view events) {
    if (begun_) co_return co_await responder_.chunk(events);
    begun_ = true;
    auto headers = event_stream_headers();
    co_return co_await responder_.begin(200, std::move(headers), events);
  }

  // The last events. If they are also the first, the response has a length and is one write.
  Task<Result<>> finish(std::string events) {
    if (!begun_) {
      http::Response whole{200, event_stream_headers(), std::move(events)};
      co_return co_await responder_.send(std::move(whole));
    }
    auto sent = co_await responder_.chunk(events);
    if (sent) sent = co_await responder_.end();
    co_return sent;
  }

 private:
  http::Responder& responder_;
  bool begun_ = false;
};

// Clients and proxies see at once that the stream is alive: the first ping stands right behind `init`.
void insert_first_ping(std::string& batch) {
  std::string ping;
  events::append_ping(ping);
  auto end = batch.find("\n\n");
  batch.insert(end == std::string::npos ? batch.size() : end + 2, ping);
}

}  // namespace

http::Headers event_stream_headers() {
  http::Headers headers;
  headers.add("Content-Type", "text/event-stream");
  headers.add("Cache-Control", "no-cache");
  headers.add("X-Accel-Buffering", "no");
  return headers;
}

Task<bool> follow(std::shared_ptr<Run> run, http::Responder& responder, std::uint64_t since, bool just_begun) {
  Reader reader(run, since);
  EventWriter writer(responder);
  std::string batch;
  auto next_ping = Clock::time_point::max();  // whoever begins a run has its first event out in a moment
  if (since > 0) next_ping = Clock::now() + kPingEvery;
  bool first = just_begun || (since == 0 && !run->ended());
  for (;;) {
    co_await reader.news(next_ping);
    if (reader.take(batch) && first) {
      insert_first_ping(batch);
      next_ping = Clock::now() + kPingEvery;
      first = false;
    }
    if (reader.at_end()) break;
    if (Clock::now() >= next_ping) {
      events::append_ping(batch);
      next_ping = Clock::now() + kPingEvery;
    }
    if (batch.empty()) continue;
    auto sent = co_await writer.send(batch);
    if (!sent) co_return false;
    reader.delivered();
    batch.clear();
  }
  auto sent = co_await writer.finish(std::move(batch));
  if (sent) reader.delivered();
  co_return static_cast<bool>(sent);
}

Task<bool> answer_repeated(Sandbox& sandbox, http::Request& request, http::Responder& responder, std::string_view body, Key& key) {
  auto read = read_key(request, body);
  if (!read) {
    co_await reply_bad_request(responder, std::move(read).error());
    co_return true;
  }
  key = *std::move(read);
  auto known = sandbox.runs.find(key);
  if (!known) {
    co_await reply_error(responder, 422, known.error().code(), known.error().what());
    co_return true;
  }
  if (!*known) co_return false;
  co_await follow(*known, responder);
  co_return true;
}

}  // namespace osb::execd::runs
