// What this host has left, read from the kernel in a few microseconds. Numbers that could not be read are as large as they get:
// a host that hides one of them is judged by the others.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace osb::runtime {

struct HostRoom {
  static constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t memory_bytes = kUnknown;            // all there is
  std::uint64_t memory_available_bytes = kUnknown;  // without swapping: MemAvailable
  std::uint64_t pids_free = kUnknown;               // processes and threads that can still be made
  std::uint64_t descriptors_free = kUnknown;        // that this process can still open
  std::uint64_t disk_free_bytes = kUnknown;         // where state is kept
};

// Looked at for every create after a pause: the kernel's files stay open, which leaves a third of what it costs.
class HostRoomReader {
 public:
  explicit HostRoomReader(std::string state_dir);
  HostRoom read();

 private:
  std::string state_dir_;
  Fd meminfo_, loadavg_, pid_max_, threads_max_;
};

HostRoom read_memory();  // of all that, memory alone

// The parts that are text, for tests.
void read_meminfo(std::string_view text, HostRoom& room);
// `loadavg` counts every task of the host ("0.1 0.2 0.3 2/318 4711"); the lower of the two limits holds.
std::uint64_t free_pids(std::string_view loadavg, std::string_view pid_max, std::string_view threads_max);

// Processors this process may run on; at least 1.
std::size_t usable_processors();

}  // namespace osb::runtime
