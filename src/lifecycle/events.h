// What happened to one sandbox, for people: the newest events, in order. The audit log is the record; this is the summary
// of it that a sandbox carries along. After a restart it begins with what the stored record still tells.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/sandbox.h"

namespace osb::lifecycle {

struct Event {
  WallTime at;
  std::string_view type;  // a literal: created, started, paused, resumed, renewed, relabelled, exited, failed, oom_killed, lost, adopted
  std::string reason;
  std::string message;
  bool of_container = true;  // its state changed; otherwise only our record of it
};

class EventLog {
 public:
  static constexpr std::size_t kMost = 64;

  void add(Event event) {
    if (events_.size() == kMost) {
      events_.erase(events_.begin());
      ++dropped_;
    }
    events_.push_back(std::move(event));
  }
  const std::vector<Event>& events() const { return events_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  std::vector<Event> events_;  // few, and moved along with every entry
  std::uint64_t dropped_ = 0;
};

// Of a sandbox that was just made, and of one whose record was read back.
EventLog begin_events(const Sandbox& sandbox);
EventLog recall_events(const Sandbox& sandbox);
// The change from `before` to the state it is in now.
Event change_event(State before, const Status& now);

}  // namespace osb::lifecycle
