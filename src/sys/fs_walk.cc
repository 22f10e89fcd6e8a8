#include "sys/fs_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "sys/fs_open.h"

namespace osb::sys::fs {
namespace {

constexpr int kOpenDir = O_RDONLY | O_DIRECTORY;

struct CloseDir {
  void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};
using DirStream = std::unique_ptr<DIR, CloseDir>;

Result<DirStream> stream_over(Fd dir) {
  DirStream stream(::fdopendir(dir.get()));
  if (!stream) return Error::from_errno("fdopendir", errno);
  (void)dir.release();  // the stream closes it
  return stream;
}

bool is_dots(const char* name) { return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')); }

// One level of a walk: a directory, and its name in the level above.
struct Level {
  DirStream entries;
  std::string name;
  int dir() const { return ::dirfd(entries.get()); }
};

Result<Level> enter(int above, const std::string& name) {
  TRY(auto dir, open_beneath(above, name, kOpenDir));
  TRY(auto entries, stream_over(std::move(dir)));
  return Level{std::move(entries), name};
}

Result<> remove_children(Level top) {
  std::vector<Level> levels;
  levels.push_back(std::move(top));
  while (true) {
    Level& level = levels.back();
    errno = 0;
    const struct dirent* entry = ::readdir(level.entries.get());
    if (entry == nullptr && errno != 0) return Error::from_errno("readdir", errno);
    if (entry == nullptr) {
      std::string name = level.name;
      levels.pop_back();
      if (levels.empty()) return Ok{};
      CHECK_OK(remove_dir_at(levels.back().dir(), name));
      continue;
    }
    if (is_dots(entry->d_name)) continue;
    std::string name = entry->d_name;
    auto removed = unlink_at(level.dir(), name);
    if (removed || removed.error().sys() == ENOENT) continue;
    if (removed.error().sys() != EISDIR && removed.error().sys() != EPERM) return std::move(removed).error();
    TRY(auto below, enter(level.dir(), name));
    levels.push_back(std::move(below));
  }
}

Result<> check_directory(const std::string& path) {
  TRY(auto dir, open_directory(path));
  TRY(auto info, stat_fd(dir.get()));
  if (info.st_uid != 0 && info.st_uid != ::geteuid())
    return Error(Errc::permission_denied, cat("directory ", path, " belongs to uid ", info.st_uid, ", who could replace what is in it"));
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0)
    return Error(Errc::permission_denied, cat("directory ", path, " is writable by others")).with_hint(cat("chmod go-w ", path));
  return Ok{};
}

}  // namespace

Result<std::vector<std::string>> list_dir(int dir, std::size_t max_names) {
  TRY(auto own, open_beneath(dir, ".", kOpenDir));  // a stream of its own: the caller's read position stays
  TRY(auto stream, stream_over(std::move(own)));
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const struct dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return Error::from_errno("readdir", errno);
    if (entry == nullptr) break;
    if (is_dots(entry->d_name)) continue;
    if (names.size() == max_names) return Error(Errc::too_large, cat("directory has more than ", max_names, " names"));
    names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> names_in(const std::string& directory) {
  auto dir = open_directory(directory);
  auto names = dir ? list_dir(dir->get(), SIZE_MAX) : std::move(dir).error();
  return names ? *std::move(names) : std::vector<std::string>();
}

Result<> remove_tree(int dir, const std::string& name) {
  auto info = stat_at(dir, name);
  if (!info && info.error().sys() == ENOENT) return Ok{};
  if (!info) return std::move(info).error();
  if (!S_ISDIR(info->st_mode)) return unlink_at(dir, name);
  TRY(auto top, enter(dir, name));
  if (auto emptied = remove_children(std::move(top)); !emptied) return std::move(emptied).error().in(cat("remove ", json_string(name)));
  return remove_dir_at(dir, name);
}

Result<TreeSize> measure_tree(int dir) {
  TreeSize size;
  std::set<ino_t> linked;
  std::vector<Level> levels;
  TRY(auto top, enter(dir, "."));
  levels.push_back(std::move(top));
  while (!levels.empty()) {
    Level& level = levels.back();
    errno = 0;
    const struct dirent* entry = ::readdir(level.entries.get());
    if (entry == nullptr && errno != 0) return Error::from_errno("readdir", errno);
    if (entry == nullptr) {
      levels.pop_back();
      continue;
    }
    if (is_dots(entry->d_name)) continue;
    std::string name = entry->d_name;
    TRY(auto info, stat_at(level.dir(), name));
    ++size.entries;
    bool counted = S_ISREG(info.st_mode) && (info.st_nlink == 1 || linked.insert(info.st_ino).second);
    if (counted) size.bytes += static_cast<std::uint64_t>(info.st_size);
    if (!S_ISDIR(info.st_mode)) continue;
    TRY(auto below, enter(level.dir(), name));
    levels.push_back(std::move(below));
  }
  return size;
}

Result<> check_path_is_ours(const std::string& path) {
  std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  if (!real) return Error::from_errno(cat("resolve ", json_string(path)), errno);
  std::string whole = real.get();
  CHECK_OK(check_directory("/"));
  for (std::size_t at = whole.find('/', 1); at != std::string::npos; at = whole.find('/', at + 1))
    CHECK_OK(check_directory(whole.substr(0, at)));
  return check_directory(whole);
}

}  // namespace osb::sys::fs
