#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/id.h"
#include "base/text.h"
#include "execd/files/dir_stream.h"
#include "execd/files/paths.h"
#include "execd/files/tree.h"

namespace osb::execd::files {
namespace {

constexpr std::size_t kStep = 256 * 1024;

// Copies one tree to a name where nothing is yet, one entry or one piece of a file a step.
class Copier {
 public:
  Copier(std::string from, std::string to) {
    waiting_.push_back({std::move(from), std::move(to)});
    held_ = cost(waiting_.back());
  }

  Result<bool> step() {
    if (out_) return copy_some();
    if (waiting_.empty()) return finish_directories();
    auto next = std::move(waiting_.back());
    waiting_.pop_back();
    held_ -= cost(next);
    struct stat info{};
    if (::lstat(next.from.c_str(), &info) != 0) return failed("move", next.from, errno);
    if (S_ISREG(info.st_mode)) return begin_file(std::move(next), info);
    if (S_ISDIR(info.st_mode)) return copy_directory(std::move(next), info);
    return copy_link(next, info);
  }

 private:
  struct Made {
    std::string path;
    struct stat info;
  };

  static std::size_t cost(const Move& move) { return sizeof move + move.from.size() + move.to.size(); }

  Result<bool> begin_file(Move next, const struct stat& info) {
    in_ = open_at(AT_FDCWD, next.from, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    if (!in_) return failed("move", next.from, errno);
    out_ = Fd(::open(next.to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!out_) return failed("move", next.to, errno);
    file_ = {std::move(next.to), info};
    return false;
  }

  Result<bool> copy_some() {
    auto n = ::sendfile(out_.get(), in_.get(), nullptr, kStep);
    if (n < 0 && errno != EINTR) return failed("move", file_.path, errno);
    if (n != 0) return false;
    out_.reset();
    return like_the_source(file_);
  }

  Result<bool> copy_directory(Move next, const struct stat& info) {
    if (directories_.size() == 100'000 || next.to.size() > 4000) return failed("move", next.from, ENAMETOOLONG);
    if (::mkdir(next.to.c_str(), 0700) != 0) return failed("move", next.to, errno);
    auto stream = stream_over(open_at(AT_FDCWD, next.from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (!stream) return failed("move", next.from, errno);
    while (const dirent* entry = ::readdir(stream.get())) {
      if (is_dots(entry->d_name)) continue;
      waiting_.push_back({join(next.from, entry->d_name), join(next.to, entry->d_name)});
      held_ += cost(waiting_.back());
      if (held_ > kMaxNamesHeld) return Error(Errc::too_large, "the tree has too many names to be moved to another mount");
    }
    directories_.push_back({std::move(next.to), info});
    return false;
  }

  static Result<bool> copy_link(const Move& next, const struct stat& info) {
    if (!S_ISLNK(info.st_mode)) return refused(next.from, "is neither file, directory nor link: it cannot be moved to another mount");
    char target[4096];
    auto n = ::readlink(next.from.c_str(), target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    if (n < 0 || ::symlink(target, next.to.c_str()) != 0) return failed("move", next.to, errno);
    return like_the_source({next.to, info});
  }

  // A directory gets its mode and times when all is in it.
  Result<bool> finish_directories() {
    if (directories_.empty()) return true;
    auto done = like_the_source(directories_.back());
    directories_.pop_back();
    return done;
  }

  static Result<bool> like_the_source(const Made& made) {
    const char* path = made.path.c_str();
    const struct timespec times[2] = {made.info.st_atim, made.info.st_mtim};
    bool set = ::lchown(path, made.info.st_uid, made.info.st_gid) == 0 &&
               (S_ISLNK(made.info.st_mode) || ::chmod(path, made.info.st_mode & 0777) == 0) &&
               ::utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) == 0;
    if (!set) return failed("move", made.path, errno);
    return false;
  }

  std::vector<Move> waiting_;
  std::vector<Made> directories_;
  std::size_t held_ = 0;
  Fd in_;
  Fd out_;
  Made file_{};
};

int rename_new(const std::string& from, const std::string& to) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
}

class Mover final : public Work {
 public:
  explicit Mover(std::vector<Move> moves) : moves_(std::move(moves)) {}
  ~Mover() override {
    if (!hidden_.empty()) remove_now(hidden_);
    unmake_directories(made_);
  }

  std::chrono::seconds limit() const override { return std::chrono::seconds(600); }
  Error late() const override { return at_fault(Error(Errc::internal, "moving takes longer than ten minutes")); }

  Result<bool> step() override {
    if (next_ == moves_.size()) return true;
    auto stepped = removing_ ? remove_some() : copier_ ? copy_some() : begin();
    if (!stepped) return at_fault(std::move(stepped).error());
    return stepped;
  }

 private:
  const Move& move() const { return moves_[next_]; }
  Error at_fault(Error error) const { return next_ == 0 ? std::move(error) : std::move(error).in(cat("after ", next_, " moves")); }
  static Error taken(const std::string& to) { return Error(Errc::internal, cat(json_string(to.substr(0, 200)), " exists already")); }
  Error not_renamed(int sys) const { return sys == EEXIST ? taken(move().to) : failed("move", move().from, sys); }

  Result<bool> next() {
    made_.clear();
    ++next_;
    return false;
  }

  Result<bool> begin() {
    struct stat info{};
    if (::lstat(move().from.c_str(), &info) != 0) return failed("move", move().from, errno);
    if (::lstat(move().to.c_str(), &info) == 0) return taken(move().to);
    if (move().to.starts_with(cat(move().from, "/"))) return refused(move().to, "is inside of what is moved");
    TRY(auto parent, make_directories(parent_of(move().to), 0755, &made_));
    int sys = rename_new(move().from, move().to);
    if (sys == 0) return next();
    if (sys != EXDEV) return not_renamed(sys);
    // The copy grows under a hidden name, gets its place in one step, and only then the source goes.
    hidden_ = join(parent_of(move().to), cat(".osb-", random_hex(12)));
    copier_ = std::make_unique<Copier>(move().from, hidden_);
    return false;
  }

  Result<bool> copy_some() {
    TRY(bool done, copier_->step());
    if (!done) return false;
    if (int sys = rename_new(hidden_, move().to); sys != 0) return not_renamed(sys);
    hidden_.clear();
    made_.clear();
    copier_.reset();
    removing_ = remove_trees({move().from});
    return false;
  }

  Result<bool> remove_some() {
    TRY(bool done, removing_->step());
    if (!done) return false;
    removing_.reset();
    return next();
  }

  // What a copy that failed has made; nobody else knows its name, so it does not grow.
  static void remove_now(const std::string& path) {
    auto work = remove_trees({path});
    for (Result<bool> done = false; done && !*done;) done = work->step();
  }

  std::vector<Move> moves_;
  std::size_t next_ = 0;
  std::vector<std::string> made_;
  std::string hidden_;
  std::unique_ptr<Copier> copier_;
  std::unique_ptr<Work> removing_;
};

}  // namespace

std::unique_ptr<Work> move_trees(std::vector<Move> moves) { return std::make_unique<Mover>(std::move(moves)); }

}  // namespace osb::execd::files
