// Snapshot: the file-system state of a sandbox, kept as a layer of the image store. A plain value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/id.h"

namespace osb {

using SnapshotId = Id<struct SnapshotTag>;

enum class SnapshotState : std::uint8_t { creating, ready, failed, deleting };

constexpr std::string_view name_of(SnapshotState state) noexcept {
  switch (state) {
    case SnapshotState::creating: return "Creating";
    case SnapshotState::ready: return "Ready";
    case SnapshotState::failed: return "Failed";
    case SnapshotState::deleting: return "Deleting";
  }
  return "Unknown";
}

// Exact wire name, compared without case.
std::optional<SnapshotState> parse_snapshot_state(std::string_view name);

struct Snapshot {
  SnapshotId id;
  SandboxId sandbox;  // the source; it may be gone
  std::string owner;  // name of the API key that asked for it
  std::string name;   // "" = none given
  SnapshotState state = SnapshotState::creating;
  std::string reason;   // snapshot_accepted, snapshot_runtime_ready, ...
  std::string message;  // for people
  WallTime changed_at;
  WallTime created_at;
  std::string image_name;    // of the image at the bottom
  std::string image_digest;  // of the same
  std::uint64_t size_bytes = 0;
  std::uint64_t entries = 0;
};

}  // namespace osb
