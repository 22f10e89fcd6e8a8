#include "execd/runs/relay.h"

#include <algorithm>
#include <array>

#include "execd/collector.h"
#include "execd/events.h"
#include "execd/lines.h"

namespace osb::execd::runs {
namespace {

// One read and one batch of events bound what a relay holds in memory, whatever the program writes.
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kBatchBytes = 64 * 1024;

// One of the two outputs on its way to events.
class Lane {
 public:
  Lane(OutputPipe& pipe, std::string_view type, Run& run) : pipe_(pipe), type_(type), run_(run) {}

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

  // The writer has ended: what is in the pipe now still counts, what others add to it later does not.
  void close_soon() {
    left_ = pipe_.available();
    if (left_ > 0) return pipe_.expect_bytes();
    pipe_.close_at_end();  // as a rule nobody else holds it
  }

  void finish(std::string& batch) {
    if (auto line = lines_.rest()) events::append_output(batch, run_.next_seq(), type_, *line);
  }

 private:
  void append_lines(std::string_view& bytes, std::string& batch) {
    while (batch.size() < kBatchBytes) {
      auto line = lines_.next(bytes);
      if (!line) return;
      events::append_output(batch, run_.next_seq(), type_, *line);
    }
  }

  OutputPipe& pipe_;
  std::string_view type_;
  Run& run_;
  LineSplitter lines_;
  std::string pending_;  // read, but the batch was full
  std::size_t left_ = ~std::size_t{0};
};

}  // namespace

Task<void> relay_output(OutputSource& source, Run& run, std::string& batch) {
  std::array lanes{Lane(source.out(), "stdout", run), Lane(source.err(), "stderr", run)};
  bool closing = false;
  for (;;) {
    bool moved = false;
    for (Lane& lane : lanes) moved = lane.fill(batch) || moved;
    if (moved && batch.size() < kBatchBytes) continue;
    if (!moved && closing) break;
    if (!moved && !source.running()) {
      closing = true;
      for (Lane& lane : lanes) lane.close_soon();
      continue;
    }
    if (batch.empty()) {
      co_await source.activity(OutputSource::Clock::time_point::max());
      continue;
    }
    run.keep(batch);
    batch.clear();
    co_await run.room();
    if (moved) co_await give_way();
  }
  for (Lane& lane : lanes) lane.finish(batch);
}

}  // namespace osb::execd::runs
