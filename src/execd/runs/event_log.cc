#include "execd/runs/event_log.h"

#include <utility>

namespace osb::execd::runs {
namespace {

constexpr std::size_t kChunkBytes = 16 * 1024;

}  // namespace

// The budget counts what has been granted; a log that has to keep more than it was granted gives that back first.
void EventLog::drop_oldest() {
  Chunk& oldest = chunks_.front();
  memory_ -= oldest.bytes.capacity();
  if (charged_ > memory_) {
    budget_.give(charged_ - memory_);
    charged_ = memory_;
  }
  chunks_.erase(chunks_.begin());
}

// For bytes that are already in the log. What the budget refuses although nothing more may go is kept uncharged.
void EventLog::make_room(std::size_t bytes, std::uint64_t protected_from) {
  auto may_drop = [&] { return chunks_.size() > 1 && chunks_.front().end() <= protected_from; };
  while (memory_ > kMaxBytes && may_drop()) drop_oldest();
  while (!budget_.take(bytes, this)) {
    if (!may_drop()) return;
    drop_oldest();
  }
  charged_ += bytes;
}

void EventLog::append(std::string_view events, std::uint64_t count, std::uint64_t protected_from) {
  if (events.empty()) return;
  bool fits = !chunks_.empty() && chunks_.back().bytes.size() + events.size() <= kChunkBytes;
  if (!fits) chunks_.push_back({.first = last_ + 1, .count = 0, .offset = end_, .bytes = {}});
  Chunk& chunk = chunks_.back();
  std::size_t before = fits ? chunk.bytes.capacity() : 0;
  chunk.bytes.append(events);
  chunk.count += count;
  std::size_t more = chunk.bytes.capacity() - before;
  memory_ += more;
  end_ += events.size();
  last_ += count;
  if (more > 0) make_room(more, protected_from);
}

void EventLog::release() {
  budget_.give(std::exchange(charged_, 0));
  std::vector<Chunk>().swap(chunks_);
  memory_ = 0;
}

void EventLog::keep_last() {
  while (chunks_.size() > 1) drop_oldest();
  chunks_.shrink_to_fit();
}

EventLog::Position EventLog::find(std::uint64_t since) const {
  if (since >= last_) return {last_ + 1, end_};
  for (const Chunk& chunk : chunks_) {
    if (since + 1 < chunk.first) break;  // gone: the oldest that is kept, told as missed by read()
    if (since + 1 >= chunk.first + chunk.count) continue;
    std::size_t at = 0;
    for (std::uint64_t number = chunk.first; number <= since; ++number) at = chunk.bytes.find("\n\n", at) + 2;
    return {since + 1, chunk.offset + at};
  }
  return {since + 1, 0};
}

std::uint64_t EventLog::read(Position& at, std::string& out, std::size_t enough) const {
  std::uint64_t missed = 0;
  for (const Chunk& chunk : chunks_) {
    if (out.size() >= enough) return missed;
    if (chunk.end() <= at.offset) continue;
    if (chunk.offset > at.offset) {
      missed += chunk.first - at.next;
      at.offset = chunk.offset;
    }
    out.append(chunk.bytes, static_cast<std::size_t>(at.offset - chunk.offset));
    at = {chunk.first + chunk.count, chunk.end()};
  }
  if (at.offset < end_) {
    missed += last_ + 1 - at.next;
    at = {last_ + 1, end_};
  }
  return missed;
}

}  // namespace osb::execd::runs
