// Run: one command, session run or code run, as the events it has produced so far. It outlives the connection that
// started it: a client that was cut off reads on from the last number it has seen.
//
// One producer writes events: text from execd/events.h with numbers from next_seq(), given to keep() in batches, the
// last of them to finish(). Any number of readers copy them out. One reader is the primary: the client that started the
// run, or, when that one has gone, the next that attaches. The producer waits in room() for the primary alone, so a slow
// primary slows the program down as if it read the pipe itself; any other reader that is too slow is told what it missed.
#pragma once
#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "async/task.h"
#include "execd/runs/event_log.h"

namespace osb::execd::runs {

class Reader;

// What makes a repeated request the same request; empty text = the client gave none.
struct Key {
  std::string text;
  std::uint64_t request = 0;  // hash of route and body
};

class Run {
 public:
  using Clock = std::chrono::steady_clock;
  // How far the events of a run may be ahead of the primary reader.
  static constexpr std::size_t kWindow = 64 * 1024;

  Run(Executor executor, RingBudget& budget, std::string id, Key key)
      : executor_(executor), id_(std::move(id)), key_(std::move(key)), log_(budget) {}

  const std::string& id() const { return id_; }
  const Key& key() const { return key_; }
  bool ended() const { return ended_; }
  bool delivered() const { return delivered_; }              // to its end, to the primary reader
  std::int64_t ended_nanos() const { return ended_nanos_; }  // CLOCK_BOOTTIME
  bool has_primary() const { return primary_ != nullptr; }
  EventLog& log() { return log_; }

  // ---- the producer ----
  std::uint64_t next_seq() { return ++seq_; }
  void keep(std::string_view events);    // whole events, every number taken since the last call is in them
  void finish(std::string_view events);  // the last ones, with the terminal event
  Task<void> room();                     // returns when the primary is near enough, or gone: a client that stalls is given up

 private:
  friend class Reader;
  Task<void> changed(Clock::time_point until);
  void tell();

  Executor executor_;
  std::string id_;
  Key key_;
  EventLog log_;
  std::uint64_t seq_ = 0;
  Reader* primary_ = nullptr;
  std::list<Timer*> waiting_;
  bool ended_ = false;
  bool delivered_ = false;
  std::int64_t ended_nanos_ = 0;
};

// One client's place in a run.
class Reader {
 public:
  static constexpr std::size_t kBatchBytes = 64 * 1024;

  // Begins with the first event behind number `since`.
  Reader(std::shared_ptr<Run> run, std::uint64_t since);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();

  // Appends what is there, about kBatchBytes at most; says first how many events are lost. False when there was nothing.
  bool take(std::string& out);
  void delivered();  // the client has what was taken
  bool at_end() const { return run_->ended_ && at_.offset == run_->log_.end(); }
  // Returns when there may be something new, or at `until`.
  Task<void> news(Run::Clock::time_point until);

 private:
  friend class Run;
  std::shared_ptr<Run> run_;
  EventLog::Position at_;
  std::uint64_t delivered_ = 0;  // offset
};

}  // namespace osb::execd::runs
