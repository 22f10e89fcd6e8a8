// Walks over directory trees by descriptor. Nothing is followed: no symbolic link, no mount point.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace osb::sys::fs {

// Names in a directory in byte order, without "." and "..". Errc::too_large past `max_names`.
Result<std::vector<std::string>> list_dir(int dir, std::size_t max_names);
// The same for a directory of our own, or of the kernel's; none where there is no such directory.
std::vector<std::string> names_in(const std::string& directory);

// Removes `name` and all it holds. Ok when it is not there. At most one descriptor a level is open.
Result<> remove_tree(int dir, const std::string& name);

struct TreeSize {
  std::uint64_t bytes = 0;    // of regular files, each hard link once
  std::uint64_t entries = 0;  // of all kinds, the top directory not counted
};
Result<TreeSize> measure_tree(int dir);

// R-OWN: refuses a directory that anyone but root or us could replace: every directory from / down to `path` belongs to
// root or to us, and is not writable by others unless it is sticky.
Result<> check_path_is_ours(const std::string& path);

}  // namespace osb::sys::fs
