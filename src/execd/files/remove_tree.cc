#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "base/id.h"
#include "base/text.h"
#include "execd/files/dir_stream.h"
#include "execd/files/paths.h"
#include "execd/files/tree.h"

namespace osb::execd::files {
namespace {

constexpr std::size_t kMaxOpen = 32;  // levels held open; what lies deeper is first moved up
constexpr std::uint64_t kStay = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_BENEATH;

struct Level {
  DirStream entries;
  std::string name;  // in the level above
  int dir() const { return ::dirfd(entries.get()); }
};

bool may_be_directory(int sys) { return sys == EISDIR || sys == EPERM; }

class Remover final : public Work {
 public:
  explicit Remover(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  std::chrono::seconds limit() const override { return std::chrono::seconds(25); }
  Error late() const override {
    return Error(Errc::internal, cat(json_string(path().substr(0, 200)), " is not empty after 25 s: something writes into it"))
        .with_hint("end the program that does, then remove it again");
  }

  Result<bool> step() override {
    if (next_ == paths_.size()) return true;
    return levels_.empty() ? begin() : advance();
  }

 private:
  const std::string& path() const { return paths_[next_]; }
  Error left(std::string_view name, int sys) const { return failed("remove", cat(path(), name.empty() ? "" : "/.../", name), sys); }

  Result<bool> done_with_path() {
    ++next_;
    return false;
  }

  Result<bool> begin() {
    if (path() == "/") return refused(path(), "is the root directory");
    above_ = open_at(AT_FDCWD, parent_of(path()), O_PATH | O_DIRECTORY);
    if (!above_ && (errno == ENOENT || errno == ENOTDIR)) return done_with_path();
    if (!above_) return left("", errno);
    std::string name(base_name(path()));
    if (::unlinkat(above_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return done_with_path();
    if (!may_be_directory(errno)) return left("", errno);
    // The directory asked for may be a mount; below it the walk stays on its file system.
    if (!enter(above_.get(), name, RESOLVE_NO_SYMLINKS)) return left("", errno);
    return false;
  }

  bool enter(int above, const std::string& name, std::uint64_t resolve) {
    auto entries = stream_over(open_at(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, resolve));
    if (!entries) return false;
    levels_.push_back({std::move(entries), name});
    return true;
  }

  Result<bool> advance() {
    Level& level = levels_.back();
    errno = 0;
    const dirent* entry = ::readdir(level.entries.get());
    if (!entry && errno != 0) return left(level.name, errno);
    if (!entry) return leave();
    std::string name = entry->d_name;
    if (is_dots(name)) return false;
    if (::unlinkat(level.dir(), name.c_str(), 0) == 0 || errno == ENOENT) return false;
    if (!may_be_directory(errno)) return left(name, errno);
    if (::unlinkat(level.dir(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return false;
    bool went = levels_.size() >= kMaxOpen ? lift(level.dir(), name) : enter(level.dir(), name, kStay);
    if (!went && errno != ENOENT && errno != ENOTDIR) return left(name, errno);
    return false;
  }

  // A tree that is deeper than we hold open comes up to the top, where the walk finds it again.
  bool lift(int dir, const std::string& name) {
    std::string fresh = cat(".removing-", random_hex(8));
    return ::renameat2(dir, name.c_str(), levels_.front().dir(), fresh.c_str(), RENAME_NOREPLACE) == 0;
  }

  // An empty directory goes; one in which something appeared meanwhile is read again.
  Result<bool> leave() {
    Level& level = levels_.back();
    int parent = levels_.size() > 1 ? levels_[levels_.size() - 2].dir() : above_.get();
    bool gone = ::unlinkat(parent, level.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTDIR;
    if (!gone && errno != ENOTEMPTY && errno != EEXIST) return left("", errno);
    if (gone)
      levels_.pop_back();
    else
      ::rewinddir(level.entries.get());
    return levels_.empty() ? done_with_path() : false;
  }

  std::vector<std::string> paths_;
  std::size_t next_ = 0;
  Fd above_;
  std::vector<Level> levels_;
};

}  // namespace

std::unique_ptr<Work> remove_trees(std::vector<std::string> paths) { return std::make_unique<Remover>(std::move(paths)); }

}  // namespace osb::execd::files
