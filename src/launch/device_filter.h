// Which device nodes sandboxes may open on a cgroup v2 host: a tiny BPF program on the parent group.
#pragma once
#include "base/result.h"

namespace osb::launch {

struct DeviceNumber {
  unsigned major;
  unsigned minor;
};

// null, zero, full, random, urandom, tty, ptmx; pseudo terminals (major 136) are allowed whole.
inline constexpr DeviceNumber kAllowedDevices[] = {{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}};
inline constexpr unsigned kPtsMajor = 136;

// Attaches the filter to a cgroup v2 directory; every group below it inherits it.
Result<> attach_device_filter(int cgroup_dir);

}  // namespace osb::launch
