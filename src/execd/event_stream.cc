#include "execd/event_stream.h"

#include <algorithm>
#include <array>

#include "execd/collector.h"
#include "execd/events.h"
#include "execd/lines.h"

namespace osb::execd {
namespace {

using Clock = Process::Clock;

constexpr auto kPingEvery = std::chrono::seconds(3);
// A command that is over by then is answered whole, in one write, instead of waking everybody on the way three times.
constexpr auto kShortCommand = std::chrono::milliseconds(2);
// One read and one batch of events bound what a stream holds in memory, whatever the program writes.
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kBatchBytes = 64 * 1024;

// One of the two outputs on its way to events.
class Lane {
 public:
  Lane(OutputPipe& pipe, std::string_view type) : pipe_(pipe), type_(type) {}

  // Moves bytes from the pipe into `batch` while there is room in it; false when there was nothing to move.
  bool fill(std::string& batch) {
    if (batch.size() >= kBatchBytes) return true;
    if (!pending_.empty()) {
      std::string_view rest = pending_;
      append_lines(rest, batch);
      pending_.erase(0, pending_.size() - rest.size());
      return true;
    }
    std::size_t n = pipe_.read(scratch().first(std::min(kReadBytes, left_)));
    std::string_view bytes(scratch().data(), n);
    left_ -= n;
    append_lines(bytes, batch);
    pending_ = bytes;
    return n > 0;
  }

  // The leader has ended: what is in the pipe now still counts, what others add to it later does not.
  void close_soon() {
    left_ = pipe_.available();
    if (left_ > 0) pipe_.expect_bytes();
  }

  void finish(std::string& batch) {
    if (auto line = lines_.rest()) events::append_output(batch, type_, *line);
  }

 private:
  void append_lines(std::string_view& bytes, std::string& batch) {
    while (batch.size() < kBatchBytes) {
      auto line = lines_.next(bytes);
      if (!line) return;
      events::append_output(batch, type_, *line);
    }
  }

  OutputPipe& pipe_;
  std::string_view type_;
  LineSplitter lines_;
  std::string pending_;  // read, but the batch was full
  std::size_t left_ = ~std::size_t{0};
};

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

// Sends all output and stops when there is no more; false when the client is gone. What did not fill a batch stays in it.
Task<bool> relay_output(Process& process, std::array<Lane, 2>& lanes, std::string& batch, EventWriter& writer) {
  auto next_ping = Clock::now() + kPingEvery;
  bool closing = false;
  for (;;) {
    bool moved = false;
    for (Lane& lane : lanes) moved = lane.fill(batch) || moved;
    if (moved && batch.size() < kBatchBytes) continue;
    if (!moved && closing) co_return true;
    if (!moved && !process.running()) {
      closing = true;
      for (Lane& lane : lanes) lane.close_soon();
      continue;
    }
    if (Clock::now() >= next_ping) {
      events::append_ping(batch);
      next_ping = Clock::now() + kPingEvery;
    }
    if (batch.empty()) {
      co_await process.activity(next_ping);
      continue;
    }
    auto sent = co_await writer.send(batch);
    if (!sent) co_return false;
    batch.clear();
  }
}

void append_ending(std::string& batch, const Process& process) {
  const ExitStatus& status = *process.end();
  if (failed(status)) return events::append_error(batch, status);
  events::append_complete(batch, process.elapsed_millis());
}

}  // namespace

http::Headers event_stream_headers() {
  http::Headers headers;
  headers.add("Content-Type", "text/event-stream");
  headers.add("Cache-Control", "no-cache");
  headers.add("X-Accel-Buffering", "no");
  return headers;
}

Task<void> stream_command(Sandbox& sandbox, std::shared_ptr<Command> command, http::Responder& responder) {
  auto process = command->process;
  std::array lanes{Lane(process->out(), "stdout"), Lane(process->err(), "stderr")};
  EventWriter writer(responder);
  std::string batch;
  events::append_init(batch, command->id);
  events::append_ping(batch);
  co_await process->wait_end(kShortCommand);
  bool heard = co_await relay_output(*process, lanes, batch, writer);
  if (heard) {
    for (Lane& lane : lanes) lane.finish(batch);
    append_ending(batch, *process);
    [[maybe_unused]] auto sent = co_await writer.finish(std::move(batch));
  }
  if (process->out().is_open() || process->err().is_open()) drain_in_background(sandbox, std::move(process));
}

}  // namespace osb::execd
