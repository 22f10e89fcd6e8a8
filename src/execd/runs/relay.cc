#include "execd/runs/relay.h"

#include <algorithm>

#include "execd/collector.h"
#include "execd/events.h"

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

constexpr std::string_view kTypes[] = {"stdout", "stderr"};

}  // namespace

// Moves bytes from the pipe into `batch` while there is room in it; false when there was nothing to move.
bool Relay::Lane::fill(std::string& batch, Run& run, std::string_view type) {
  if (batch.size() >= kBatchBytes) return true;
  if (raw_) return fill_raw(batch, run, type);
  if (!pending_.empty()) {
    std::string_view rest = pending_;
    append_lines(rest, batch, run, type);
    pending_.erase(0, pending_.size() - rest.size());
    return true;
  }
  std::size_t n = pipe_.read(scratch().first(std::min(kReadBytes, left_)));
  std::string_view bytes(scratch().data(), n);
  left_ -= n;
  append_lines(bytes, batch, run, type);
  pending_ = bytes;
  return n > 0;
}

// A character that a read cuts in two waits for its other half.
bool Relay::Lane::fill_raw(std::string& batch, Run& run, std::string_view type) {
  std::size_t n = pipe_.read(scratch().first(std::min(kReadBytes, left_)));
  if (n == 0) return false;
  left_ -= n;
  pending_.append(scratch().data(), n);
  std::size_t cut = cut_character(pending_);
  if (cut < pending_.size())
    events::append_raw_output(batch, run.next_seq(), type, std::string_view(pending_).substr(0, pending_.size() - cut));
  pending_.erase(0, pending_.size() - cut);
  return true;
}

void Relay::Lane::append_lines(std::string_view& bytes, std::string& batch, Run& run, std::string_view type) {
  while (batch.size() < kBatchBytes) {
    auto line = lines_.next(bytes);
    if (!line) return;
    events::append_output(batch, run.next_seq(), type, *line);
  }
}

// The writer has ended: what is in the pipe now still counts, what others add to it later does not.
void Relay::Lane::close_soon() {
  left_ = pipe_.available();
  if (left_ > 0) return pipe_.expect_bytes();
  pipe_.close_at_end();  // as a rule nobody else holds it
}

void Relay::Lane::finish(std::string& batch, Run& run, std::string_view type) {
  if (raw_ && !pending_.empty()) events::append_raw_output(batch, run.next_seq(), type, pending_);
  if (auto line = lines_.rest()) events::append_output(batch, run.next_seq(), type, *line);
}

bool Relay::fill(std::string& batch) {
  bool moved = false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) moved = lanes_[i].fill(batch, run_, kTypes[i]) || moved;
  return moved;
}

void Relay::finish(std::string& batch) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].finish(batch, run_, kTypes[i]);
}

// A read that did not fill its buffer has emptied the pipe, and what the source wrote was all in there when it ended.
bool Relay::at_once(std::string& batch) {
  source_.expect_output();
  for (OutputPipe* pipe : {&source_.out(), &source_.err()}) pipe->linger(true);
  fill(batch);
  for (OutputPipe* pipe : {&source_.out(), &source_.err()}) pipe->linger(false);
  if (!lanes_[0].emptied() || !lanes_[1].emptied()) return false;
  finish(batch);
  return true;
}

Task<void> Relay::to_the_end(std::string& batch) {
  bool closing = false;
  for (;;) {
    bool moved = fill(batch);
    if (moved && batch.size() < kBatchBytes) continue;
    if (!moved && closing) break;
    if (!moved && !source_.running()) {
      closing = true;
      for (Lane& lane : lanes_) lane.close_soon();
      continue;
    }
    if (batch.empty()) {
      co_await source_.activity(OutputSource::Clock::time_point::max());
      continue;
    }
    run_.keep(batch);
    batch.clear();
    co_await run_.room();
    if (moved) co_await give_way();
  }
  finish(batch);
}

}  // namespace osb::execd::runs
