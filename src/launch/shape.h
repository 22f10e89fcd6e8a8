// What a sandbox reads about its own size: static stand-ins for /proc and /sys files, with the sandbox's numbers in
// place of the host's. They depend only on the limits, so sandboxes of one shape share one read-only directory.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "model/limits.h"

namespace osb::launch {

struct TextFile {
  std::string path;  // relative, directories included
  std::string content;
};

// Files below /proc that replace the kernel's; only those that exist on this kernel are mounted.
std::vector<TextFile> proc_files(const Limits& limits);
// The whole of /sys: programs look here for cpu counts, huge pages and their memory limit.
std::vector<TextFile> sys_files(const Limits& limits);
// hosts and resolv.conf: nothing to resolve with, localhost by name.
std::vector<TextFile> etc_files();

// Host-global files of /proc that are hidden behind an empty file, and directories hidden behind an empty one.
const std::vector<const char*>& masked_proc_files();
const std::vector<const char*>& masked_proc_dirs();

}  // namespace osb::launch
