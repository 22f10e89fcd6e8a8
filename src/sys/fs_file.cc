#include "sys/fs_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/id.h"
#include "base/text.h"
#include "sys/fs_open.h"

namespace osb::sys::fs {
namespace {

Error failed(std::string_view call) {
  int saved = errno;
  // A full disk or quota is a state of the host that can pass; the caller's retry may work.
  bool full = saved == ENOSPC || saved == EDQUOT;
  return Error::from_errno(std::string(call), saved, full ? Errc::exhausted : Errc::internal);
}

}  // namespace

Result<std::size_t> read_some_at(int fd, std::span<std::byte> into, std::uint64_t offset) {
  ssize_t n = -1;
  do {
    n = ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return failed("pread");
  return static_cast<std::size_t>(n);
}

Result<std::string> read_to_end(int fd, std::size_t max_bytes) {
  constexpr std::size_t kStep = 64 * 1024;
  std::string text;
  while (true) {
    std::size_t have = text.size();
    if (have > max_bytes) return Error(Errc::too_large, cat("file is larger than ", max_bytes, " bytes"));
    text.resize(have + kStep);
    TRY(auto n, read_some_at(fd, std::as_writable_bytes(std::span(text).subspan(have)), have));
    text.resize(have + n);
    if (n == 0) return text;
  }
}

Result<> write_fully_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("pwrite");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return Ok{};
}

Result<> set_size(int fd, std::uint64_t size) {
  if (::ftruncate(fd, static_cast<off_t>(size)) < 0) return failed("ftruncate");
  return Ok{};
}

Result<> replace_file(int dir, const std::string& name, std::string_view content, mode_t mode, Durable durable) {
  std::string beside = cat(".", name.substr(0, 200), ".", random_hex(6));
  TRY(auto fd, open_beneath(dir, beside, O_WRONLY | O_CREAT | O_EXCL, mode));
  auto written = [&]() -> Result<> {
    CHECK_OK(write_fully_at(fd.get(), std::as_bytes(std::span(content)), 0));
    if (durable == Durable::yes) CHECK_OK(flush(fd.get()));
    return rename_at(dir, beside, dir, name);
  }();
  if (!written) {
    auto removed = unlink_at(dir, beside);
    (void)removed;  // the first failure is the one to report
    return std::move(written).error().in(cat("write ", json_string(name)));
  }
  // The rename itself reaches the disk only with its directory.
  if (durable == Durable::yes) CHECK_OK(flush(dir));
  return Ok{};
}

Result<> flush_file_system(int fd) {
  if (::syncfs(fd) < 0) return failed("syncfs");
  return Ok{};
}

Result<> flush(int fd) {
  if (::fsync(fd) < 0) return failed("fsync");
  return Ok{};
}

namespace {
Result<bool> lock(int fd, int how, LockWait wait) {
  int rc = -1;
  do {
    rc = ::flock(fd, how | (wait == LockWait::no ? LOCK_NB : 0));
  } while (rc < 0 && errno == EINTR);
  if (rc == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return failed("flock");
}
}  // namespace

Result<bool> lock_exclusive(int fd, LockWait wait) { return lock(fd, LOCK_EX, wait); }
Result<bool> lock_shared(int fd, LockWait wait) { return lock(fd, LOCK_SH, wait); }

}  // namespace osb::sys::fs
