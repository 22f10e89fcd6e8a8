#include "session/idle.h"

namespace osb::session {

void IdleQueue::add(const std::string& id, std::int64_t now) {
  auto [at, added] = entries_.try_emplace(id, Entry{0, now});
  if (added) queue_.emplace(now, id);
}

void IdleQueue::remove(std::string_view id) {
  auto at = entries_.find(id);
  if (at == entries_.end()) return;
  queue_.erase({at->second.since, at->first});
  entries_.erase(at);
}

void IdleQueue::begin(std::string_view id) {
  auto at = entries_.find(id);
  if (at == entries_.end()) return;
  if (at->second.uses++ == 0) queue_.erase({at->second.since, at->first});
}

void IdleQueue::end(std::string_view id, std::int64_t now) {
  auto at = entries_.find(id);
  if (at == entries_.end() || at->second.uses == 0 || --at->second.uses > 0) return;
  at->second.since = now;
  queue_.emplace(now, at->first);
}

std::optional<std::int64_t> IdleQueue::oldest() const {
  if (queue_.empty()) return std::nullopt;
  return queue_.begin()->first;
}

std::vector<std::string> IdleQueue::take(std::int64_t until) {
  std::vector<std::string> out;
  while (!queue_.empty() && queue_.begin()->first <= until) {
    out.push_back(queue_.begin()->second);
    entries_.erase(out.back());
    queue_.erase(queue_.begin());
  }
  return out;
}

}  // namespace osb::session
