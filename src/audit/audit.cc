#include "audit/audit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "audit/line.h"
#include "base/log.h"
#include "base/text.h"

namespace osb::audit {
namespace {

// Space kept ahead of the end, so that deletes can still be recorded when sandboxes have filled the disk.
constexpr std::int64_t kReserveBytes = 256 * 1024;
constexpr std::int64_t kReserveLowBytes = 64 * 1024;
// Far longer than the longest record (kMaxDetails values and names, each byte escaped to six).
constexpr std::int64_t kTailBytes = 4 * 1024 * 1024;

Error unavailable(std::string what, int sys) { return Error::from_errno(std::move(what), sys, Errc::unavailable); }

Result<std::string> read_tail(int fd, std::int64_t size) {
  std::string tail(static_cast<std::size_t>(std::min(size, kTailBytes)), '\0');
  std::size_t done = 0;
  auto from = size - static_cast<std::int64_t>(tail.size());
  while (done < tail.size()) {
    auto n = ::pread(fd, tail.data() + done, tail.size() - done, from + static_cast<std::int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return unavailable("read audit log", n < 0 ? errno : EIO);
    done += static_cast<std::size_t>(n);
  }
  return tail;
}

}  // namespace

Result<std::unique_ptr<Log>> Log::open(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return unavailable(cat("make audit directory ", directory), errno);
  auto path = directory + "/audit.jsonl";
  Fd file(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return unavailable(cat("open ", path), errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return Error(Errc::conflict, cat(path, " is written by another process"))
        .with_hint("stop the other server, or give this one its own audit.directory");
  std::unique_ptr<Log> log(new Log);
  log->file_ = std::move(file);
  log->path_ = std::move(path);
  CHECK_OK(log->resume());
  return log;
}

std::unique_ptr<Log> Log::to(std::function<Result<>(std::string_view line)> sink) {
  std::unique_ptr<Log> log(new Log);
  log->sink_ = std::move(sink);
  return log;
}

std::unique_ptr<Log> Log::discard() {
  return to([](std::string_view) -> Result<> { return Ok{}; });
}

Result<> Log::record(const Caller& caller, const Event& event) {
  CHECK_OK(append(make_line(seq_, caller, event)));
  ++seq_;
  return Ok{};
}

Result<> Log::resume() {
  struct stat info{};
  if (::fstat(file_.get(), &info) != 0) return unavailable(cat("stat ", path_), errno);
  if (!S_ISREG(info.st_mode)) return Error(Errc::unavailable, cat(path_, " is not a regular file"));
  size_ = info.st_size;
  if (size_ == 0) return Ok{};
  TRY(auto tail, read_tail(file_.get(), size_));
  auto whole = tail.substr(0, tail.rfind('\n') + 1);  // npos + 1 = nothing
  auto torn = std::string_view(tail).substr(whole.size());
  auto last = last_seq(whole);
  // Without any whole record the file is ours only if the cut one begins like one.
  if (!last && (!whole.empty() || !begins_like_record(torn)))
    return Error(Errc::unavailable, cat(path_, " does not end in an audit record; it is damaged or not ours"))
        .with_hint("move the file away to start a new one");
  seq_ = last.value_or(0) + 1;
  if (torn.empty()) return Ok{};
  torn_ = true;
  log::warn("audit log ends in a torn line", {{"file", path_}, {"bytes", torn.size()}});
  auto noted = record({"system", true, ""}, {"audit.recover", "", "ok", {{"torn_bytes", cat(torn.size())}}});
  if (!noted) log::error("audit log cannot be written now", {{"error", noted.error().what()}});
  return Ok{};
}

Result<> Log::append(std::string_view line) {
  if (sink_) return sink_(line);
  reserve();
  // A torn line that could not be taken back is ended first, in the same write.
  std::string ended;
  if (torn_) ended = cat("\n", line);
  std::string_view bytes = torn_ ? ended : line;
  ssize_t n;
  do n = ::write(file_.get(), bytes.data(), bytes.size());
  while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(bytes.size())) {
    size_ += n;
    torn_ = false;
    return Ok{};
  }
  int why = n < 0 ? errno : ENOSPC;
  if (n > 0 && ::ftruncate(file_.get(), size_) != 0) {
    torn_ = true;
    size_ += n;
  }
  return unavailable(cat("write ", path_), why);
}

void Log::reserve() {
  if (size_ + kReserveLowBytes <= reserved_until_) return;
  if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, size_, kReserveBytes) == 0) reserved_until_ = size_ + kReserveBytes;
}

}  // namespace osb::audit
