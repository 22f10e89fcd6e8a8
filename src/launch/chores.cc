#include "launch/chores.h"

#include <utility>

namespace osb::launch {

void Chores::put(std::uint64_t at, Chore chore, const std::string& id) {
  auto before = std::exchange(times_[id][static_cast<std::size_t>(chore)], at);
  if (before != 0) by_time_.erase({before, chore, id});
  by_time_.insert({at, chore, id});
}

void Chores::drop_all_of(const std::string& id) {
  auto found = times_.find(id);
  if (found == times_.end()) return;
  for (std::size_t kind = 0; kind < found->second.size(); ++kind)
    if (auto at = found->second[kind]; at != 0) by_time_.erase({at, static_cast<Chore>(kind), id});
  times_.erase(found);
}

std::optional<Chores::Due> Chores::take(std::uint64_t now) {
  if (by_time_.empty() || by_time_.begin()->at > now) return std::nullopt;
  Due due = std::move(by_time_.extract(by_time_.begin()).value());
  times_[due.id][static_cast<std::size_t>(due.chore)] = 0;
  return due;
}

}  // namespace osb::launch
