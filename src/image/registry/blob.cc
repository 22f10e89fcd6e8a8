#include "image/registry/blob.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "image/budget.h"
#include "image/sha256.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"

namespace osb::image::registry {
namespace {

namespace fs = sys::fs;

constexpr std::size_t kPiece = 256 * 1024;
constexpr std::uint64_t kSpaceEvery = 32u << 20;
constexpr int kMaxRounds = 40;  // a server that gives a little each time is left in the end
constexpr std::size_t kMaxFiles = 100'000;
constexpr std::int64_t kWeekMicros = 7ll * 86400 * 1'000'000;

Error refused(std::string what) { return Error(Errc::invalid_argument, std::move(what)).with_code("SANDBOX::IMAGE_PULL_FAILED"); }

// The file as far as it goes, with its hash, through cuts and retries.
class Download {
 public:
  Download(Session& session, const BlobRequest& request, int file) : session_(session), request_(request), file_(file) {}

  Result<> run(const std::stop_token& stop) {
    CHECK_OK(take_up());
    int idle = 0;
    for (int round = 0; at_ < request_.size; ++round) {
      std::uint64_t before = at_;
      auto done = receive();
      if (done) continue;
      if (!is_passing(done.error()) || round >= kMaxRounds) return done;
      idle = at_ > before ? 0 : idle + 1;
      if (idle >= kAttempts) return done;
      CHECK_OK(pause_before(idle, stop));
    }
    return check();
  }

 private:
  // What an earlier attempt left is hashed again: nobody vouches for a file that a crash may have cut.
  Result<> take_up() {
    TRY(auto info, fs::stat_fd(file_));
    auto size = static_cast<std::uint64_t>(info.st_size);
    if (size > request_.size) return restart();
    std::vector<std::byte> piece(kPiece);
    while (at_ < size) {
      TRY(auto got, fs::read_some_at(file_, piece, at_));
      if (got == 0) break;
      hash_->update(std::span(piece).first(got));
      at_ += got;
    }
    resumed_ = at_ > 0;
    return Ok{};
  }

  Result<> restart() {
    CHECK_OK(fs::set_size(file_, 0));
    hash_ = std::make_unique<Sha256>();
    at_ = 0;
    return Ok{};
  }

  Result<> receive() {
    auto answer = session_.get({.path = cat("blobs/sha256:", request_.hex), .accept = {}, .from = at_});
    if (!answer && answer.error().kind() == Errc::too_large && at_ > 0) return restart();
    if (!answer) return std::move(answer).error();
    if ((*answer)->status() == 206) {
      CHECK_OK(check_range((*answer)->headers().get("Content-Range")));
    } else if (at_ > 0) {
      CHECK_OK(restart());
    }
    if (auto length = (*answer)->content_length(); length && *length != request_.size - at_)
      return refused(cat("blob ", request_.hex, ": the registry sends ", *length, " bytes where the manifest says ", request_.size - at_));
    return receive_body(**answer);
  }

  Result<> check_range(std::string_view range) const {
    std::string expected = cat("bytes ", at_, "-", request_.size - 1, "/", request_.size);
    if (range == expected) return Ok{};
    return refused(cat("blob ", request_.hex, ": the registry answers with another range than asked for"));
  }

  Result<> receive_body(Exchange& answer) {
    std::string piece(kPiece, '\0');
    while (true) {
      TRY(auto got, answer.read(piece));
      if (got == 0) break;
      if (got > request_.size - at_) return refused(cat("blob ", request_.hex, " is longer than the manifest says"));
      auto bytes = std::as_bytes(std::span(piece).first(got));
      CHECK_OK(fs::write_fully_at(file_, bytes, at_));
      hash_->update(bytes);
      at_ += got;
      if (request_.progress) request_.progress(at_);
      CHECK_OK(check_space());
    }
    if (at_ < request_.size) return Error(Errc::unavailable, "the registry ends a blob too early");
    return Ok{};
  }

  Result<> check_space() {
    if (at_ - space_checked_at_ < kSpaceEvery) return Ok{};
    space_checked_at_ = at_;
    TRY(auto space, fs::space_of(file_));
    return check_reserve(space);
  }

  Result<> check() {
    std::string actual = hash_->hex();
    if (actual == request_.hex) return Ok{};
    CHECK_OK(restart());
    return refused(cat("blob ", request_.hex, " has digest ", actual, resumed_ ? " (continued from an earlier download)" : ""));
  }

  Session& session_;
  const BlobRequest& request_;
  int file_;
  std::unique_ptr<Sha256> hash_ = std::make_unique<Sha256>();
  std::uint64_t at_ = 0;
  std::uint64_t space_checked_at_ = 0;
  bool resumed_ = false;

 public:
  bool resumed() const { return resumed_; }
};

}  // namespace

Result<bool> Downloads::link_finished(const BlobRequest& request, int to_dir) {
  auto linked = fs::make_link_at(dir_, request.hex, to_dir, request.hex);
  if (!linked && linked.error().sys() == ENOENT) return false;
  if (!linked && linked.error().sys() != EEXIST) return std::move(linked).error();
  if (request.progress) request.progress(request.size);
  return true;
}

// The lock tells a download under way from one that was left. Its holder renames the file when it is complete, so after
// the wait the name may stand for nothing or for another file.
Result<Fd> Downloads::open_part(const std::string& name, const std::stop_token& stop) {
  TRY(auto file, fs::open_beneath(dir_, name, O_RDWR | O_CREAT, 0600));
  while (true) {
    TRY(bool ours, fs::lock_exclusive(file.get(), fs::LockWait::no));
    if (ours) return file;
    CHECK_OK(pause_before(0, stop));
  }
}

Result<> Downloads::fetch(Session& session, const BlobRequest& request, int to_dir, const std::stop_token& stop) {
  std::string part = cat(request.hex, ".part");
  while (true) {
    TRY(bool there, link_finished(request, to_dir));
    if (there) return Ok{};
    TRY(auto file, open_part(part, stop));
    TRY(auto mine, fs::stat_fd(file.get()));
    auto named = fs::stat_at(dir_, part);
    if (!named || named->st_ino != mine.st_ino) continue;
    Download download(session, request, file.get());
    auto done = download.run(stop);
    if (!done && download.resumed() && done.error().kind() == Errc::invalid_argument) {
      // The part may have been damaged here rather than there: once more, from the start.
      CHECK_OK(fs::set_size(file.get(), 0));
      Download fresh(session, request, file.get());
      done = fresh.run(stop);
    }
    if (!done && done.error().kind() == Errc::invalid_argument) {
      if (auto gone = fs::unlink_at(dir_, part); !gone) log::warn("download stays", {{"error", gone.error().what()}});
    }
    if (!done) return done;
    CHECK_OK(fs::rename_at(dir_, part, dir_, request.hex));
  }
}

void Downloads::forget(const std::string& hex) {
  auto gone = fs::unlink_at(dir_, hex);
  if (!gone && gone.error().sys() != ENOENT) log::warn("download stays", {{"error", gone.error().what()}});
}

Result<> Downloads::trim(std::uint64_t max_bytes) {
  struct Kept {
    std::int64_t micros;
    std::uint64_t bytes;
    std::string name;
  };
  TRY(auto names, fs::list_dir(dir_, kMaxFiles));
  std::vector<Kept> kept;
  for (const std::string& name : names) {
    auto file = fs::open_beneath(dir_, name, O_RDWR);
    if (!file) continue;
    TRY(bool idle, fs::lock_exclusive(file->get(), fs::LockWait::no));
    if (!idle) continue;
    TRY(auto info, fs::stat_fd(file->get()));
    kept.push_back({info.st_mtim.tv_sec * 1'000'000ll, static_cast<std::uint64_t>(info.st_size), name});
  }
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.micros > b.micros; });
  std::uint64_t total = 0;
  for (const Kept& file : kept) {
    total += file.bytes;
    bool stays = total <= max_bytes && wall_now().micros - file.micros < kWeekMicros;
    if (!stays) CHECK_OK(fs::unlink_at(dir_, file.name));
  }
  return Ok{};
}

}  // namespace osb::image::registry
