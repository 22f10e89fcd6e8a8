// Volumes: what a request asks to be mounted, and the named ones that outlive sandboxes. Plain values.
#pragma once
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/id.h"

namespace osb {

using VolumeId = Id<struct VolumeTag>;

// One item of `volumes` in a create request, judged; exactly one of host_path and claim is set.
struct VolumeSpec {
  std::string name;
  std::string host_path;  // absolute
  std::string claim;      // name of a named volume
  std::string mount_path;
  std::string sub_path;  // relative, no ".."; "" = the whole volume
  bool read_only = false;
  bool create_if_missing = true;     // named volumes
  bool delete_with_sandbox = false;  // named volumes that were made on demand
  std::uint64_t size_bytes = 0;      // named volumes made on demand; 0 = the configured size
  std::string volume_id = {};        // named volumes: which one it is; set when the sandbox is made
};

// A named volume.
struct Volume {
  VolumeId id;
  std::string owner;  // name of the API key whose it is; "" = everybody's
  std::string name;
  std::uint64_t size_bytes = 0;
  bool on_demand = false;  // made for a sandbox that asked for it, not by `volume create`
  WallTime created_at;
};

}  // namespace osb
