#include "lifecycle/entrance.h"

#include <algorithm>

namespace osb::lifecycle {

Entrance::Entrance(Executor executor, AdmissionLimits limits, Standings standings, Rooms rooms)
    : executor_(executor), limits_(limits), standings_(std::move(standings)), rooms_(std::move(rooms)) {}

void Entrance::set_limits(AdmissionLimits limits) {
  limits_ = limits;
  advance();
}

Task<Result<Entrance::Ticket>> Entrance::enter(std::string key, std::uint64_t memory_bytes) {
  auto decision = decide(limits_, room(), load(key), memory_bytes);
  if (decision.verdict == Verdict::refuse) co_return refusal_error(decision.why, limits_);
  auto waiter = std::make_shared<Waiter>(executor_, std::move(key), memory_bytes);
  Ticket ticket(*this, waiter);
  if (decision.verdict == Verdict::admit) {
    let_in(*waiter);
    co_return ticket;
  }
  auto& line = lines_[waiter->key];
  if (line.waiters.empty()) turns_.push_back(waiter->key);
  line.waiters.push_back(waiter.get());
  waiter->in_line = true;
  ++waiting_;
  waiter->called.expires_after(limits_.longest_wait);
  co_await waiter->called.async_wait(nothrow);
  if (!waiter->inside) co_return refusal_error(waiter->why, limits_);
  co_return ticket;
}

bool Entrance::host_has_room() { return find_shortage(limits_, room(), {}, 0) == Refusal::none; }

Load Entrance::load(const std::string& key) const {
  auto standing = standings_(key);
  Load out{.sandboxes = standing.sandboxes + creates_,
           .key_sandboxes = standing.key_sandboxes,
           .promised_bytes = standing.promised_bytes + making_bytes_,
           .creates = creates_,
           .waiting = waiting_};
  if (auto line = lines_.find(key); line != lines_.end()) {
    out.key_sandboxes += line->second.creates;
    out.key_creates = line->second.creates;
    out.key_waiting = line->second.waiters.size();
  }
  return out;
}

const runtime::HostRoom& Entrance::room() {
  auto now = std::chrono::steady_clock::now();
  if (rooms_ && now - room_read_ >= kRoomAge) {
    room_ = rooms_();
    room_read_ = now;
  }
  return room_;
}

void Entrance::let_in(Waiter& waiter) {
  waiter.inside = true;
  ++lines_[waiter.key].creates;
  ++creates_;
  making_bytes_ += waiter.memory_bytes;
}

void Entrance::leave(Waiter& waiter) {
  auto& line = lines_[waiter.key];
  if (waiter.inside) {
    --line.creates;
    --creates_;
    making_bytes_ -= waiter.memory_bytes;
  } else if (waiter.in_line) {
    std::erase(line.waiters, &waiter);
    --waiting_;
    if (line.waiters.empty()) turns_.remove(waiter.key);
  }
  tidy(waiter.key);
  advance();
}

// Gives free places to those in line. Room is asked for again: it may have gone since they came.
void Entrance::advance() {
  while (auto* next = take_next()) {
    auto why = find_shortage(limits_, room(), load(next->key), next->memory_bytes);
    if (why == Refusal::none) {
      let_in(*next);
    } else {
      next->why = why;
    }
    next->called.cancel();
  }
}

// The first in line of the key whose turn it is; that key's next turn comes after everybody else's.
Entrance::Waiter* Entrance::take_next() {
  if (creates_ >= limits_.most_creates()) return nullptr;
  for (auto turn = turns_.begin(); turn != turns_.end(); ++turn) {
    auto& line = lines_[*turn];
    if (line.creates >= limits_.most_creates_of_a_key()) continue;
    auto* waiter = line.waiters.front();
    line.waiters.pop_front();
    waiter->in_line = false;
    --waiting_;
    if (line.waiters.empty()) {
      turns_.erase(turn);
    } else {
      turns_.splice(turns_.end(), turns_, turn);
    }
    return waiter;
  }
  return nullptr;
}

void Entrance::tidy(const std::string& key) {
  auto line = lines_.find(key);
  if (line != lines_.end() && line->second.creates == 0 && line->second.waiters.empty()) lines_.erase(line);
}

}  // namespace osb::lifecycle
