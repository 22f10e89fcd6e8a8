#include "lifecycle/table.h"

#include <algorithm>
#include <utility>

namespace osb::lifecycle {

Entry* Table::find(std::string_view id) {
  auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second.entry;
}

const Entry* Table::find(std::string_view id) const {
  auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second.entry;
}

Entry& Table::insert(Entry&& entry) {
  auto id = entry.sandbox.id.text();
  auto& row = entries_.try_emplace(std::move(id), std::move(entry)).first->second;
  by_age_.emplace(Key{row.entry.sandbox.created_at.micros, row.entry.sandbox.id.text()}, &row.entry);
  index(row);
  return row.entry;
}

void Table::remove(std::string_view id) {
  auto found = entries_.find(id);
  if (found == entries_.end()) return;
  unindex(found->second);
  by_age_.erase({found->second.entry.sandbox.created_at.micros, found->first});
  entries_.erase(found);
}

void Table::changed(Entry& entry) {
  auto& row = entries_.find(entry.sandbox.id.text())->second;
  unindex(row);
  index(row);
}

std::size_t Table::live_of(std::string_view owner) const {
  auto found = live_of_.find(owner);
  return found == live_of_.end() ? 0 : found->second;
}

std::optional<std::string> Table::oldest_finished() const {
  if (finished_.empty()) return std::nullopt;
  return finished_.begin()->second;
}

std::size_t Table::of_pool(std::string_view pool) const {
  auto found = pools_.find(pool);
  return found == pools_.end() ? 0 : found->second;
}

std::optional<std::int64_t> Table::next_due() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

std::vector<std::string> Table::due(std::int64_t now) const {
  std::vector<std::string> ids;
  for (const auto& [moment, id] : due_) {
    if (moment > now) break;
    ids.push_back(id);
  }
  return ids;
}

std::optional<Table::Key> Table::due_key(const Entry& entry) {
  if (entry.sandbox.deadline_boot_nanos == 0 || entry.leaving != Leaving::no) return std::nullopt;
  auto moment = static_cast<std::int64_t>(entry.sandbox.deadline_boot_nanos);
  if (!is_finished(entry.sandbox.status.state)) moment += kRuntimeGraceNanos;
  return Key{std::max(moment, entry.expire_not_before), entry.sandbox.id.text()};
}

std::optional<Table::Key> Table::finished_key(const Entry& entry) {
  if (!is_finished(entry.sandbox.status.state)) return std::nullopt;
  return Key{entry.sandbox.status.changed_at.micros, entry.sandbox.id.text()};
}

void Table::index(Row& row) {
  row.due = due_key(row.entry);
  row.finished = finished_key(row.entry);
  if (row.due) due_.insert(*row.due);
  if (row.finished) finished_.insert(*row.finished);
  row.pool = row.finished || row.entry.leaving != Leaving::no ? std::string() : pool_of(row.entry.sandbox.spec);
  if (!row.pool.empty()) ++pools_[row.pool];
  if (!row.finished) count(row);
}

void Table::unindex(Row& row) {
  if (row.due) due_.erase(*row.due);
  if (row.finished) finished_.erase(*row.finished);
  if (!row.pool.empty() && --pools_[row.pool] == 0) pools_.erase(row.pool);
  row.pool.clear();
  row.due.reset();
  row.finished.reset();
  uncount(row);
}

void Table::count(Row& row) {
  row.counted = true;
  row.counted_bytes = row.entry.sandbox.spec.limits.memory_bytes;
  promised_bytes_ += row.counted_bytes;
  ++live_of_[row.entry.sandbox.owner];
}

// By what was counted: the specification may have been moved out of the entry since.
void Table::uncount(Row& row) {
  if (!std::exchange(row.counted, false)) return;
  promised_bytes_ -= row.counted_bytes;
  auto owner = live_of_.find(row.entry.sandbox.owner);
  if (--owner->second == 0) live_of_.erase(owner);
}

}  // namespace osb::lifecycle
