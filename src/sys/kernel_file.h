// Small kernel files (cgroup, proc, sysctl): whole reads and writes through descriptors.
#pragma once
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace osb::sys {

Result<Fd> open_dir(const std::string& path);  // O_PATH | O_DIRECTORY
Result<Fd> open_at(int dir, const char* path, int flags, mode_t mode = 0);
Result<std::string> read_file(const std::string& path, std::size_t limit = 1 << 20);
Result<std::string> read_at(int dir, const char* path, std::size_t limit = 1 << 20);
// A short file that is kept open, from its beginning.
Result<std::string> reread(int fd);
// One write(2), as kernel files want it. Never creates.
Result<> write_at(int dir, const char* path, std::string_view text);
Result<> write_new_file(int dir, const char* path, std::string_view text, mode_t mode);
Result<> make_dir_at(int dir, const char* path, mode_t mode);  // existing directory is fine
Result<> make_dirs(const std::string& path, mode_t mode);      // like mkdir -p

// "key value" lines of cgroup and proc files; 0 when the key is absent.
std::uint64_t value_of(std::string_view text, std::string_view key);

}  // namespace osb::sys
