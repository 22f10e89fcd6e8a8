#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/vfs.h>

#include <algorithm>

#include "base/text.h"
#include "execd/files/dir_stream.h"
#include "execd/files/info.h"
#include "execd/files/paths.h"
#include "execd/files/tree.h"

namespace osb::execd::files {
namespace {

struct Entry {
  std::string name;
  bool directory = false;
};

struct Level {
  std::string path;
  std::vector<Entry> entries;
  std::size_t next = 0;
};

Error too_much(std::string_view what) {
  return Error(Errc::too_large, cat("the listing ", what))
      .with_code("RUNTIME_ERROR")
      .with_hint("name a smaller directory, depth or pattern");
}

std::size_t cost(const Entry& entry) { return sizeof entry + (entry.name.size() > 15 ? entry.name.capacity() : 0); }

bool is_directory(DIR& stream, const dirent& entry) {
  struct stat info{};
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  return ::fstatat(::dirfd(&stream), entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

// Holds no descriptor but that of the directory it reads: others are opened by path from the root, links not followed, so a
// deep tree costs nothing and one that changes is only smaller.
class Lister final : public Work {
 public:
  Lister(std::string root, std::uint64_t depth, std::optional<Glob> files_like)
      : path_(std::move(root)), depth_(depth), files_like_(std::move(files_like)) {}

  std::chrono::seconds limit() const override { return std::chrono::seconds(5); }
  Error late() const override { return too_much("takes longer than 5 s"); }
  std::string take_result() override { return std::move(out_ += "]"); }

  Result<bool> step() override {
    if (!root_) return begin();
    if (stream_) return read_some();
    if (levels_.empty()) return true;
    tell_some();
    if (out_.size() > kMaxListing) return too_much("is larger than 16 MiB");
    return false;
  }

 private:
  Result<bool> begin() {
    root_ = open_at(AT_FDCWD, path_, O_PATH | O_DIRECTORY);
    if (!root_) return failed("list", path_, errno);
    enter("");
    return false;
  }

  // A directory that is gone, or is one of the kernel's own below what was asked for, is passed by.
  void enter(std::string path) {
    Fd dir = open_at(root_.get(), path.empty() ? "." : path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    struct statfs fs{};
    bool kernels = !path.empty() && dir && ::fstatfs(dir.get(), &fs) == 0 && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC);
    if (kernels) return;
    stream_ = stream_over(std::move(dir));
    if (stream_) levels_.push_back({std::move(path), {}});
  }

  bool keeps(const dirent& entry) const {
    if (is_dots(entry.d_name)) return false;
    bool may_be_directory = entry.d_type == DT_DIR || entry.d_type == DT_UNKNOWN;
    return may_be_directory || !files_like_ || files_like_->matches(entry.d_name);
  }

  Result<bool> read_some() {
    auto& entries = levels_.back().entries;
    for (int i = 0; i < 16; ++i) {
      const dirent* entry = ::readdir(stream_.get());
      if (!entry) {
        stream_.reset();
        std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
        return false;
      }
      if (!keeps(*entry)) continue;
      entries.push_back({entry->d_name, is_directory(*stream_, *entry)});
      held_ += cost(entries.back());
    }
    if (held_ > kMaxNamesHeld) return too_much("meets a directory with too many names");
    return false;
  }

  void tell_some() {
    for (int i = 0; i < 16 && !stream_ && !levels_.empty(); ++i) {
      Level& level = levels_.back();
      if (level.next == level.entries.size()) {
        leave();
        continue;
      }
      const Entry& entry = level.entries[level.next++];
      std::string path = level.path.empty() ? entry.name : cat(level.path, "/", entry.name);
      if (!(files_like_ && entry.directory)) tell(path);
      if (entry.directory && levels_.size() < depth_) enter(std::move(path));
    }
  }

  void tell(const std::string& path) {
    struct stat info{};
    if (::fstatat(root_.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;  // gone, or too deep to be named
    if (files_like_ && S_ISDIR(info.st_mode)) return;
    if (out_.size() > 1) out_ += ",";
    append_info(out_, join(path_, path), info, names_);
  }

  void leave() {
    for (const Entry& entry : levels_.back().entries) held_ -= cost(entry);
    levels_.pop_back();
  }

  std::string path_;
  std::uint64_t depth_;
  std::optional<Glob> files_like_;
  Fd root_;
  Names names_;
  DirStream stream_;  // of the last level, while it is read
  std::vector<Level> levels_;
  std::size_t held_ = 0;
  std::string out_ = "[";
};

}  // namespace

std::unique_ptr<Work> list_tree(std::string root, std::uint64_t depth, std::optional<Glob> files_like) {
  return std::make_unique<Lister>(std::move(root), depth, std::move(files_like));
}

}  // namespace osb::execd::files
