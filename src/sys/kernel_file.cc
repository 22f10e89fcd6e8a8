#include "sys/kernel_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.h"

namespace osb::sys {
namespace {

Result<std::string> drain(const Fd& fd, const std::string& name, std::size_t limit) {
  std::string out;
  char buffer[4096];
  for (;;) {
    auto n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::from_errno("read " + name, errno);
    if (n == 0) return out;
    out.append(buffer, static_cast<std::size_t>(n));
    if (out.size() > limit) return Error(Errc::too_large, cat(name, " is larger than ", limit, " bytes"));
  }
}

}  // namespace

Result<Fd> open_at(int dir, const char* path, int flags, mode_t mode) {
  int fd = ::openat(dir, path, flags | O_CLOEXEC, mode);
  if (fd < 0) return Error::from_errno(cat("open ", path), errno);
  return Fd(fd);
}

Result<Fd> open_dir(const std::string& path) { return open_at(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY); }

Result<std::string> read_at(int dir, const char* path, std::size_t limit) {
  TRY(auto fd, open_at(dir, path, O_RDONLY));
  return drain(fd, path, limit);
}

Result<std::string> reread(int fd) {
  char buffer[4096];
  auto n = ::pread(fd, buffer, sizeof buffer, 0);
  if (n < 0) return Error::from_errno("read", errno);
  return std::string(buffer, static_cast<std::size_t>(n));
}

Result<std::string> read_file(const std::string& path, std::size_t limit) { return read_at(AT_FDCWD, path.c_str(), limit); }

Result<> write_at(int dir, const char* path, std::string_view text) {
  TRY(auto fd, open_at(dir, path, O_WRONLY));
  auto n = ::write(fd.get(), text.data(), text.size());
  if (n < 0) return Error::from_errno(cat("write ", path), errno);
  if (static_cast<std::size_t>(n) != text.size()) return Error(Errc::internal, cat("short write to ", path));
  return Ok{};
}

Result<> write_new_file(int dir, const char* path, std::string_view text, mode_t mode) {
  TRY(auto fd, open_at(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  while (!text.empty()) {
    auto n = ::write(fd.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::from_errno(cat("write ", path), errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return Ok{};
}

Result<> make_dir_at(int dir, const char* path, mode_t mode) {
  if (::mkdirat(dir, path, mode) != 0 && errno != EEXIST) return Error::from_errno(cat("mkdir ", path), errno);
  return Ok{};
}

Result<> make_dirs(const std::string& path, mode_t mode) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    CHECK_OK(make_dir_at(AT_FDCWD, path.substr(0, at).c_str(), 0755));
  return make_dir_at(AT_FDCWD, path.c_str(), mode);
}

std::uint64_t value_of(std::string_view text, std::string_view key) {
  for (auto line : split(text, '\n')) {
    if (line.size() <= key.size() || !line.starts_with(key) || line[key.size()] != ' ') continue;
    return parse_int<std::uint64_t>(trim(line.substr(key.size()))).value_or(0);
  }
  return 0;
}

}  // namespace osb::sys
