// Admission: whether one more sandbox may be made now, later, or not. A pure rule: numbers in, a decision out.
//
// Order of the questions: does the host have room (memory, tasks, descriptors, disk), does the server, does the caller's key; then
// whether there is a place among the creates under way or one in the line before it. See entrance.h for the line itself.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "runtime/host_room.h"

namespace osb::lifecycle {

struct AdmissionLimits {
  std::size_t sandboxes = 20'000;
  std::optional<std::size_t> sandboxes_per_key;
  std::size_t creates = 0;  // at the same time; 0 = four for each cpu, at least 8
  std::size_t waiting_per_key = 256;
  std::size_t waiting = 1024;  // of all keys together
  std::chrono::milliseconds longest_wait{10'000};
  std::uint64_t memory_reserve_percent = 10;               // of the host's memory stays available
  std::optional<std::uint64_t> memory_overcommit_percent;  // all limits together, of the host's memory; nullopt = no bound
  std::uint64_t pids_reserve = 1024;
  std::uint64_t descriptors_reserve = 128;
  std::uint64_t disk_reserve_bytes = 64ull << 20;

  std::size_t most_creates() const;
  // One key never has all places: what it makes slow is slow for itself.
  std::size_t most_creates_of_a_key() const;
};

// How things stand when somebody asks.
struct Load {
  std::size_t sandboxes = 0;  // living and being made
  std::size_t key_sandboxes = 0;
  std::uint64_t promised_bytes = 0;  // memory limits of all of them
  std::size_t creates = 0;           // under way
  std::size_t key_creates = 0;
  std::size_t waiting = 0;
  std::size_t key_waiting = 0;
};

enum class Refusal : std::uint8_t {
  none,
  memory,
  promises,
  pids,
  descriptors,
  disk,
  host,
  sandboxes,
  key_sandboxes,
  line,
  key_line,
  waited
};

enum class Verdict : std::uint8_t { admit, wait, refuse };
struct Decision {
  Verdict verdict = Verdict::admit;
  Refusal why = Refusal::none;
};

// Why no sandbox of `memory_bytes` may be made at all; none when one may.
Refusal find_shortage(const AdmissionLimits& limits, const runtime::HostRoom& room, const Load& load, std::uint64_t memory_bytes);
Decision decide(const AdmissionLimits& limits, const runtime::HostRoom& room, const Load& load, std::uint64_t memory_bytes);

// As the caller reads it: exhausted when it is about the caller's own key, unavailable when it is about everybody.
Error refusal_error(Refusal why, const AdmissionLimits& limits);
// A create that the runtime or the store gave up for want of something.
Error out_of_room(Error error);
// The seconds a client should wait before it asks again; 0 for codes that are not of an admission.
int retry_after_seconds(std::string_view code);

}  // namespace osb::lifecycle
