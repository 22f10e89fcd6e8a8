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

// How many bytes at the end begin a character that is not whole yet.
std::size_t cut_character(std::string_view bytes) {
  for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    auto c = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((c & 0xC0) == 0x80) continue;
    std::size_t whole = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    return whole > back ? back : 0;
  }
  return 0;
}

// One of the two outputs on its way to events.
class Lane {
 public:
  Lane(OutputPipe& pipe, std::string_view type, Run& run, bool raw) : pipe_(pipe), type_(type), run_(run), raw_(raw) {}

  // Moves bytes from the pipe into `batch` while there is room in it; false when there was nothing to move.
  bool fill(std::string& batch) {
    if (batch.size() >= kBatchBytes) return true;
    if (raw_) return fill_raw(batch);
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
    if (raw_ && !pending_.empty()) events::append_raw_output(batch, run_.next_seq(), type_, pending_);
    if (auto line = lines_.rest()) events::append_output(batch, run_.next_seq(), type_, *line);
  }

 private:
  // A character that a read cuts in two waits for its other half.
  bool fill_raw(std::string& batch) {
    std::size_t n = pipe_.read(scratch().first(std::min(kReadBytes, left_)));
    if (n == 0) return false;
    left_ -= n;
    pending_.append(scratch().data(), n);
    std::size_t cut = cut_character(pending_);
    if (cut < pending_.size())
      events::append_raw_output(batch, run_.next_seq(), type_, std::string_view(pending_).substr(0, pending_.size() - cut));
    pending_.erase(0, pending_.size() - cut);
    return true;
  }

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
  std::string pending_;  // read, but the batch was full, or the beginning of a character
  bool raw_;
  std::size_t left_ = ~std::size_t{0};
};

}  // namespace

Task<void> relay_output(OutputSource& source, Run& run, std::string& batch, bool raw) {
  std::array lanes{Lane(source.out(), "stdout", run, raw), Lane(source.err(), "stderr", run, raw)};
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
