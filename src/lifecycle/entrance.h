// Entrance: the door before a create. Lets so many in at a time, keeps the others in one line a key, and takes the lines in turn:
// a key with a thousand waiting creates delays another key's only one by one turn.
//
// Nobody waits longer than the limits say, no line is longer, and what is refused has cost a few comparisons.
#pragma once
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "async/task.h"
#include "base/result.h"
#include "lifecycle/admission.h"

namespace osb::lifecycle {

// What lives already, told by whoever keeps the records. Creates under way are counted here.
struct Standing {
  std::size_t sandboxes = 0;
  std::size_t key_sandboxes = 0;
  std::uint64_t promised_bytes = 0;
};

class Entrance {
  struct Waiter;

 public:
  using Standings = std::function<Standing(const std::string& key)>;
  using Rooms = std::function<runtime::HostRoom()>;

  // A place among the creates under way, or in the line; given back when it goes. Must not outlive the entrance.
  class Ticket {
   public:
    Ticket(Entrance& entrance, std::shared_ptr<Waiter> waiter) : entrance_(&entrance), waiter_(std::move(waiter)) {}
    Ticket(Ticket&& other) noexcept : entrance_(other.entrance_), waiter_(std::move(other.waiter_)) {}
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (waiter_) entrance_->leave(*waiter_);
    }

   private:
    Entrance* entrance_;
    std::shared_ptr<Waiter> waiter_;
  };

  // `rooms` empty: the host is not looked at.
  Entrance(Executor executor, AdmissionLimits limits, Standings standings, Rooms rooms);

  void set_limits(AdmissionLimits limits);
  const AdmissionLimits& limits() const { return limits_; }
  // A refusal of admission.h, or a ticket to be kept until the create is recorded or undone.
  Task<Result<Ticket>> enter(std::string key, std::uint64_t memory_bytes);

  // For work that can wait, such as making sandboxes ahead of time: false while the host is short of something.
  bool host_has_room();
  std::size_t creates() const { return creates_; }
  std::size_t waiting() const { return waiting_; }

 private:
  static constexpr auto kRoomAge = std::chrono::milliseconds(100);

  struct Waiter {
    Waiter(Executor executor, std::string k, std::uint64_t memory) : key(std::move(k)), memory_bytes(memory), called(executor) {}
    std::string key;
    std::uint64_t memory_bytes;
    Timer called;  // ends early when it is this one's turn, or when its turn will not come
    bool inside = false;
    bool in_line = false;
    Refusal why = Refusal::waited;
  };
  struct Line {
    std::deque<Waiter*> waiters;
    std::size_t creates = 0;
  };

  Load load(const std::string& key) const;
  const runtime::HostRoom& room();
  void let_in(Waiter& waiter);
  void leave(Waiter& waiter);
  void advance();
  Waiter* take_next();
  void tidy(const std::string& key);

  Executor executor_;
  AdmissionLimits limits_;
  Standings standings_;
  Rooms rooms_;
  runtime::HostRoom room_;
  std::chrono::steady_clock::time_point room_read_{};
  std::map<std::string, Line> lines_;  // of keys that make or wait for something
  std::list<std::string> turns_;       // keys with somebody in line; the first is next
  std::size_t creates_ = 0;
  std::size_t waiting_ = 0;
  std::uint64_t making_bytes_ = 0;
};

}  // namespace osb::lifecycle
