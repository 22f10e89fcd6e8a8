// EventLog: the last events of one run, by number and by byte offset. Offsets and numbers never go back.
//
// Events are kept in chunks of about 16 KiB, exactly as they were written to the client, so that a reader copies bytes and
// nothing is encoded twice. Oldest chunks go when the log is full or the shared budget refuses more; what the protected
// reader has not got yet never goes, however tight memory is: it is bounded by how far a run may be ahead of that reader.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "execd/ring.h"

namespace osb::execd::runs {

class EventLog {
 public:
  static constexpr std::size_t kMaxBytes = 1024 * 1024;

  // The budget outlives the log.
  explicit EventLog(RingBudget& budget) : budget_(budget) {}
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  ~EventLog() { release(); }

  // Whole events, `count` of them; nothing behind `protected_from` is given up for them.
  void append(std::string_view events, std::uint64_t count, std::uint64_t protected_from);
  void release();    // forgets the bytes, keeps numbers and offsets
  void keep_last();  // forgets all but the last chunk, which has the end of an ended run

  std::uint64_t end() const { return end_; }    // offset behind the newest byte
  std::uint64_t last() const { return last_; }  // number of the newest event; 0 = none yet
  std::size_t memory() const { return memory_; }

  struct Position {
    std::uint64_t next = 1;    // number of the first event not yet read
    std::uint64_t offset = 0;  // where it begins
  };
  // Where the first event behind number `since` is, or will be.
  Position find(std::uint64_t since) const;
  // Appends whole events from `at` on to `out` until it holds `enough`, and moves `at` behind them. Returns how many
  // events were no longer there and have been skipped.
  std::uint64_t read(Position& at, std::string& out, std::size_t enough) const;

 private:
  struct Chunk {
    std::uint64_t first = 0;  // number of its first event
    std::uint64_t count = 0;
    std::uint64_t offset = 0;
    std::string bytes;
    std::uint64_t end() const { return offset + bytes.size(); }
  };
  void make_room(std::size_t bytes, std::uint64_t protected_from);
  void drop_oldest();

  RingBudget& budget_;
  std::vector<Chunk> chunks_;  // oldest first
  std::size_t memory_ = 0;     // of all chunks
  std::size_t charged_ = 0;    // of it, what the budget granted
  std::uint64_t end_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace osb::execd::runs
