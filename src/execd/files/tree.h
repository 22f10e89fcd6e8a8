// Reading, removing and copying trees that others may change at the same time.
//
// Nothing is followed: no symbolic link, no mount when removing. All are bounded in time, and the listing also in what it
// holds in memory, whatever the tree does meanwhile.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "execd/files/glob.h"
#include "execd/files/work.h"

namespace osb::execd::files {

inline constexpr std::size_t kMaxListing = 16 * 1024 * 1024;    // bytes of one answer
inline constexpr std::size_t kMaxNamesHeld = 16 * 1024 * 1024;  // of directories being walked

// "[FileInfo,...]" of what is below `root`, an absolute path of a directory: depth first, in byte order within a directory,
// `depth` levels. With `files_like` only entries that are no directories, with such a name. What vanishes meanwhile is left out.
std::unique_ptr<Work> list_tree(std::string root, std::uint64_t depth, std::optional<Glob> files_like);

// rm -rf. Nothing there is fine; "/" and mounts below are refused. When something keeps writing into it, it ends with what is left.
std::unique_ptr<Work> remove_trees(std::vector<std::string> paths);

struct Move {
  std::string from;
  std::string to;
};
// One after the other; each is all or nothing, and the first that fails ends it. Neither replaces what is at `to` (an error)
// nor follows a link that either name is. Parents of `to` are made. Across mounts it copies, then removes the source.
std::unique_ptr<Work> move_trees(std::vector<Move> moves);

}  // namespace osb::execd::files
