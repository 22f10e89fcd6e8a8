#include "lifecycle/admission.h"

#include <algorithm>
#include <array>
#include <thread>

#include "base/text.h"

namespace osb::lifecycle {
namespace {

struct Row {
  Refusal why;
  Errc kind;
  std::string_view code;
  int retry_after;
  std::string_view what;
  std::string_view hint;
};

constexpr std::string_view kHostHint = "Try again later, or delete sandboxes that are no longer needed.";

constexpr std::array kRows = std::to_array<Row>({
    {Refusal::memory, Errc::unavailable, "SANDBOX::HOST_MEMORY_LOW", 5, "The host has too little memory left for another sandbox.",
     kHostHint},
    {Refusal::promises, Errc::unavailable, "SANDBOX::HOST_MEMORY_PROMISED", 5,
     "The memory limits of all sandboxes together have reached what this server promises.",
     "Ask for less memory, or delete sandboxes that are no longer needed."},
    {Refusal::pids, Errc::unavailable, "SANDBOX::HOST_PIDS_LOW", 5, "The host has too few process ids left for another sandbox.",
     kHostHint},
    {Refusal::descriptors, Errc::unavailable, "SANDBOX::HOST_DESCRIPTORS_LOW", 1,
     "The server has too few descriptors left for another sandbox.", "Try again later, or close connections that are no longer needed."},
    {Refusal::disk, Errc::unavailable, "SANDBOX::HOST_DISK_LOW", 30, "The disk that the server keeps its state on is almost full.",
     "Free space below the state directory."},
    {Refusal::host, Errc::unavailable, "SANDBOX::HOST_EXHAUSTED", 5, "The host has no room for another sandbox.", kHostHint},
    {Refusal::sandboxes, Errc::unavailable, "SANDBOX::LIMIT_REACHED", 5, "This server holds as many sandboxes as it may.",
     "Delete sandboxes that are no longer needed, or raise sessions.max_concurrent."},
    {Refusal::key_sandboxes, Errc::exhausted, "SANDBOX::KEY_LIMIT_REACHED", 5, "This key has as many sandboxes as it may.",
     "Delete sandboxes that are no longer needed, or raise limits.max_sandboxes_per_key."},
    {Refusal::line, Errc::unavailable, "SANDBOX::QUEUE_FULL", 1, "Too many creates wait for their turn.", "Try again in a moment."},
    {Refusal::key_line, Errc::exhausted, "SANDBOX::KEY_QUEUE_FULL", 1, "Too many creates of this key wait for their turn.",
     "Send fewer at the same time, or raise limits.max_waiting_per_key."},
    {Refusal::waited, Errc::unavailable, "SANDBOX::QUEUE_TIMEOUT", 2, "The create did not get its turn in time.", "Try again in a moment."},
});

const Row& row_of(Refusal why) {
  const auto* found = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) { return row.why == why; });
  return found == kRows.end() ? kRows.front() : *found;
}

// Percent of a number that may be anything up to 2^64 - 1.
std::uint64_t part_of(std::uint64_t whole, std::uint64_t percent) { return whole / 100 * percent; }

bool knows_memory(const runtime::HostRoom& room) {
  return room.memory_bytes != runtime::HostRoom::kUnknown && room.memory_available_bytes != runtime::HostRoom::kUnknown;
}

Refusal host_shortage(const AdmissionLimits& limits, const runtime::HostRoom& room, std::uint64_t promised) {
  if (knows_memory(room) && room.memory_available_bytes < part_of(room.memory_bytes, limits.memory_reserve_percent)) return Refusal::memory;
  if (room.pids_free < limits.pids_reserve) return Refusal::pids;
  if (room.descriptors_free < limits.descriptors_reserve) return Refusal::descriptors;
  if (room.disk_free_bytes < limits.disk_reserve_bytes) return Refusal::disk;
  auto percent = limits.memory_overcommit_percent;
  if (percent && knows_memory(room) && promised > part_of(room.memory_bytes, *percent)) return Refusal::promises;
  return Refusal::none;
}

}  // namespace

std::size_t AdmissionLimits::most_creates() const {
  if (creates > 0) return creates;
  static const std::size_t kCpus = std::max(1u, std::thread::hardware_concurrency());
  return std::max<std::size_t>(8, 4 * kCpus);
}

std::size_t AdmissionLimits::most_creates_of_a_key() const {
  auto most = most_creates();
  return std::max<std::size_t>(1, most - most / 4);
}

Refusal find_shortage(const AdmissionLimits& limits, const runtime::HostRoom& room, const Load& load, std::uint64_t memory_bytes) {
  if (auto why = host_shortage(limits, room, load.promised_bytes + memory_bytes); why != Refusal::none) return why;
  if (load.sandboxes >= limits.sandboxes) return Refusal::sandboxes;
  if (limits.sandboxes_per_key && load.key_sandboxes >= *limits.sandboxes_per_key) return Refusal::key_sandboxes;
  return Refusal::none;
}

Decision decide(const AdmissionLimits& limits, const runtime::HostRoom& room, const Load& load, std::uint64_t memory_bytes) {
  if (auto why = find_shortage(limits, room, load, memory_bytes); why != Refusal::none) return {Verdict::refuse, why};
  bool place = load.creates < limits.most_creates() && load.key_creates < limits.most_creates_of_a_key();
  if (place && load.key_waiting == 0) return {Verdict::admit, Refusal::none};
  if (load.key_waiting >= limits.waiting_per_key) return {Verdict::refuse, Refusal::key_line};
  if (load.waiting >= limits.waiting) return {Verdict::refuse, Refusal::line};
  return {Verdict::wait, Refusal::none};
}

Error refusal_error(Refusal why, const AdmissionLimits& limits) {
  const Row& row = row_of(why);
  std::string what(row.what);
  if (why == Refusal::sandboxes) what = cat("This server holds its maximum of ", limits.sandboxes, " sandboxes.");
  if (why == Refusal::key_sandboxes) what = cat("This key has its maximum of ", limits.sandboxes_per_key.value_or(0), " sandboxes.");
  return Error(row.kind, std::move(what)).with_code(row.code).with_hint(row.hint);
}

Error out_of_room(Error error) {
  if (error.kind() != Errc::exhausted || retry_after_seconds(error.code()) > 0) return error;
  const Row& row = row_of(Refusal::host);
  return Error(row.kind, error.what(), error.sys()).with_code(row.code).with_hint(row.hint);
}

int retry_after_seconds(std::string_view code) {
  const auto* found = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) { return row.code == code; });
  return found == kRows.end() ? 0 : found->retry_after;
}

}  // namespace osb::lifecycle
