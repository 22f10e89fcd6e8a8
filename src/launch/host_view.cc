#include "launch/host_view.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

namespace osb::launch {

std::vector<enter::HostDirectory> host_directories() {
  std::vector<enter::HostDirectory> found;
  for (const char* name : {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    struct stat info{};
    std::string path = cat("/", name);
    if (::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) found.push_back({path, name});
  }
  return found;
}

std::vector<std::string> existing_in_proc(const std::vector<const char*>& names) {
  std::vector<std::string> found;
  for (const char* name : names)
    if (::access(cat("/proc/", name).c_str(), F_OK) == 0) found.emplace_back(name);
  return found;
}

}  // namespace osb::launch
