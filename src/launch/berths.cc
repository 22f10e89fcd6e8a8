#include "launch/berths.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ranges>

#include "base/log.h"
#include "base/text.h"

namespace osb::launch {
namespace {

// More than a busy second needs; each holds a network namespace, a quarter of a megabyte of kernel memory.
constexpr std::size_t kMostInReserve = 96;
constexpr int kPatience = 2000;  // milliseconds, at the end, for the last to leave their groups

constexpr std::size_t kMostSprouts = 32;

bool is_bare(const Berth& berth) { return !berth.sprout; }

}  // namespace

std::string Berths::group_name(std::uint32_t range) { return cat("berth-", range); }

void Berth::let_go() {
  user_namespace.reset();
  network = {};
  root = {};
  sprout = {};
  Group place;
  place.name = std::move(group.name);
  place.cpu_nanos_before = group.cpu_nanos_before;
  group = std::move(place);
}

Berth Berths::take_at(std::deque<Berth>::iterator at) {
  Berth berth = std::move(*at);
  ready_.erase(at);
  return berth;
}

// A sprout of another kind is left to others while there is a berth without one.
Result<Berth> Berths::take(const SproutKind& kind) {
  if (ready_.empty()) return begin();
  auto found = std::ranges::find_if(ready_, [&](const Berth& berth) { return berth.sprout.serves(kind); });
  if (found == ready_.end()) found = std::ranges::find_if(ready_, is_bare);
  return take_at(found == ready_.end() ? ready_.begin() : found);
}

Result<Berth> Berths::begin() {
  Berth berth;
  TRY(berth.range, ranges_.take());
  auto made = make_user_namespace(switches_, berth.first_id());
  if (!made) {
    ranges_.give_back(berth.range);
    return std::move(made).error();
  }
  berth.user_namespace = *std::move(made);
  return berth;
}

Result<> Berths::complete_network(Berth& berth) {
  if (berth.network.ns) return Ok{};
  TRY(berth.network, make_network_namespace(switches_));
  return Ok{};
}

Result<> Berths::complete_group(Berth& berth) {
  if (berth.group.v2) return Ok{};
  TRY(berth.group, groups_.make(group_name(berth.range)));
  return Ok{};
}

Berths::Return Berths::put_back(Berth& berth) {
  bool complete = berth.user_namespace && berth.network.ns && berth.group.v2;
  if (keep_ == 0 || !complete || ready_.size() >= kMostInReserve) return Return::spoiled;
  if (groups_.populated(berth.group)) return Return::busy;
  if (!is_untouched(berth.network) || !groups_.renew(berth.group)) return Return::spoiled;
  ready_.push_back(std::move(berth));
  return Return::kept;
}

bool Berths::wants_sprout() const { return std::ranges::any_of(ready_ | std::views::take(std::min(keep_, kMostSprouts)), is_bare); }

std::optional<Berth> Berths::take_bare() {
  auto found = std::ranges::find_if(ready_, is_bare);
  if (found == ready_.end()) return std::nullopt;
  return take_at(found);
}

void Berths::end_dead_sprouts() {
  for (auto& berth : ready_)
    if (berth.sprout.has_died()) berth.sprout.end();
}

void Berths::give_back(Berth berth) { ready_.push_front(std::move(berth)); }

// A part that cannot be made now is made, or reported, by the create that needs it. What is begun is completed, so that the
// reserve is whole berths.
bool Berths::refill_one() { return (growing_ || ready_.size() < keep_) && make_next_part(); }

bool Berths::make_next_part() {
  if (!growing_) {
    auto begun = begin();
    if (begun)
      growing_ = *std::move(begun);
    else
      log::warn("cannot make a user namespace ahead of time", {{"error", begun.error().what()}});
    return static_cast<bool>(begun);
  }
  auto made = !growing_->network.ns ? complete_network(*growing_) : complete_group(*growing_);
  if (!made) {
    log::warn("cannot make a berth ahead of time", {{"error", made.error().what()}});
    discard(*std::exchange(growing_, std::nullopt));
    return false;
  }
  if (growing_->group.v2) ready_.push_back(*std::exchange(growing_, std::nullopt));
  return true;
}

bool Berths::holds_roots() const {
  return std::ranges::any_of(ready_, [](const Berth& berth) { return static_cast<bool>(berth.root.tree); });
}

void Berths::drop_stale_roots(std::uint64_t now) {
  for (auto& berth : ready_)
    if (berth.root.is_stale(now)) berth.root = {};
}

void Berths::trim_one() {
  Berth berth = std::move(ready_.back());
  ready_.pop_back();
  discard(std::move(berth));
}

void Berths::discard(Berth berth) {
  berth.sprout.end();
  if (berth.group.v2) {
    auto removed = groups_.remove(berth.group.name);
    if (!removed && removed.error().sys() == EBUSY) return put_off(std::move(berth));  // its sprout is reaped but may still be leaving
    if (!removed) log::error("cannot remove cgroup", {{"group", berth.group.name}, {"error", removed.error().what()}});
  }
  ranges_.give_back(berth.range);
}

void Berths::put_off(Berth berth) { put_off_.push_back(berth.range); }

bool Berths::remove_put_off() {
  if (put_off_.empty()) return false;
  auto range = put_off_.front();
  if (auto removed = groups_.remove(group_name(range)); !removed) {
    if (removed.error().sys() == EBUSY) return false;
    log::error("cannot remove cgroup", {{"group", group_name(range)}, {"error", removed.error().what()}});
  }
  put_off_.pop_front();
  ranges_.give_back(range);
  return true;
}

void Berths::clear() {
  if (growing_) discard(*std::exchange(growing_, std::nullopt));
  while (!ready_.empty()) trim_one();
  for (int patience = 0; !put_off_.empty() && patience < kPatience; ++patience) {
    if (!remove_put_off()) ::usleep(1000);
  }
}

}  // namespace osb::launch
