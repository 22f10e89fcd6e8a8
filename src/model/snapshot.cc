#include "model/snapshot.h"

#include "base/text.h"

namespace osb {

std::optional<SnapshotState> parse_snapshot_state(std::string_view name) {
  for (auto state : {SnapshotState::creating, SnapshotState::ready, SnapshotState::failed, SnapshotState::deleting})
    if (iequals(name_of(state), name)) return state;
  return std::nullopt;
}

}  // namespace osb
