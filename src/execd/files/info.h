// FileInfo: what clients learn about a file, as JSON. Owners are names where the sandbox has names for them.
#pragma once
#include <sys/stat.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::execd::files {

// The sandbox's own user and group names. The files are read when the first name is asked for, once in the life of this
// object: it belongs to one request.
class Names {
 public:
  std::string user(std::uint32_t uid);
  std::string group(std::uint32_t gid);
  std::optional<std::uint32_t> user_id(std::string_view name);
  std::optional<std::uint32_t> group_id(std::string_view name);

 private:
  void load();
  bool loaded_ = false;
  std::string passwd_;
  std::string group_;
  std::map<std::uint32_t, std::string> users_;  // already looked up; a tree has few owners
  std::map<std::uint32_t, std::string> groups_;
};

std::string_view type_of(mode_t mode);  // "file", "directory", "symlink", "other"
// The octal digits read as a decimal number: 0644 is 644.
int mode_number(mode_t mode);
void append_info(std::string& out, const std::string& path, const struct stat& info, Names& names);

}  // namespace osb::execd::files
