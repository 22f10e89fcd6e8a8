#include "image/layer_writer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"

namespace osb::image {
namespace {

namespace fs = sys::fs;

constexpr int kOpenDir = O_RDONLY | O_DIRECTORY;
constexpr std::size_t kMaxDirectoryNames = 256u << 20;  // bytes: the memory a hostile archive can make us hold
constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kAufs = ".wh..wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";

Error refused(std::string what) { return Error(Errc::invalid_argument, std::move(what)); }

bool is_whiteout(const struct stat& info) { return S_ISCHR(info.st_mode) && info.st_rdev == 0; }

Result<> check_owner(const Entry& entry) {
  if (entry.uid < 0 || entry.uid > kMaxOwner) return refused(cat("owner ", entry.uid, " is not in 0..", kMaxOwner));
  if (entry.gid < 0 || entry.gid > kMaxOwner) return refused(cat("group ", entry.gid, " is not in 0..", kMaxOwner));
  return Ok{};
}

uid_t owner_of(const Entry& entry) { return static_cast<uid_t>(entry.uid); }
gid_t group_of(const Entry& entry) { return static_cast<gid_t>(entry.gid); }

Result<> copy_content(int fd, const Entry& entry, EntryData& data) {
  auto size = static_cast<std::uint64_t>(entry.size);
  std::uint64_t end = 0;
  while (true) {
    TRY(auto block, data.next_block());
    if (!block) break;
    if (block->offset > size || block->bytes.size() > size - block->offset) return refused("content goes past its declared size");
    CHECK_OK(fs::write_fully_at(fd, block->bytes, block->offset));
    end = block->offset + block->bytes.size();
  }
  return end == size ? Result<>(Ok{}) : fs::set_size(fd, size);
}

}  // namespace

Result<std::string> clean_path(std::string_view raw) {
  if (raw.size() > kMaxPathBytes) return refused("path is longer than 4096 bytes");
  if (raw.find('\0') != raw.npos) return refused("path contains a zero byte");
  std::string clean;
  std::size_t depth = 0;
  for (std::string_view part : split(raw, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return refused("path contains \"..\"");
    if (part.size() > kMaxNameBytes) return refused("name is longer than 255 bytes");
    if (++depth > kMaxPathDepth) return refused("path is deeper than 128 directories");
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  return clean;
}

Result<> LayerWriter::add(const Entry& entry, EntryData& data) {
  constexpr std::size_t kShown = 200;
  auto added = add_checked(entry, data);
  if (added) return added;
  return std::move(added).error().in(cat("entry ", json_string(std::string_view(entry.path).substr(0, kShown))));
}

Result<> LayerWriter::add_checked(const Entry& entry, EntryData& data) {
  CHECK_OK(budget_.charge_entry());
  TRY(auto path, clean_path(entry.path));
  CHECK_OK(check_owner(entry));
  if (entry.size < 0) return refused("negative size");
  // The layer's own directory stays ours: 0755, root.
  if (path.empty()) return entry.kind == EntryKind::directory ? Result<>(Ok{}) : refused("the root is not a directory");
  if (entry.kind == EntryKind::device || entry.kind == EntryKind::other) {
    ++passed_over_;
    return Ok{};
  }
  TRY(auto at, place(path));
  if (at.name.starts_with(kWhiteout)) return add_whiteout(at);
  switch (entry.kind) {
    case EntryKind::file: return add_file(at, entry, data);
    case EntryKind::directory: return add_directory(at, entry);
    case EntryKind::symlink: return add_symlink(at, entry);
    case EntryKind::hard_link: return add_hard_link(at, entry);
    case EntryKind::fifo: return add_fifo(at, entry);
    case EntryKind::device:
    case EntryKind::other: break;
  }
  return Ok{};
}

Result<> LayerWriter::add_file(const Place& at, const Entry& entry, EntryData& data) {
  CHECK_OK(budget_.charge_bytes(static_cast<std::uint64_t>(entry.size)));
  constexpr int kCreate = O_WRONLY | O_CREAT | O_EXCL;
  auto made = fs::open_beneath(at.dir, at.name, kCreate, 0600);
  if (!made && made.error().sys() == EEXIST) {
    CHECK_OK(clear(at));
    made = fs::open_beneath(at.dir, at.name, kCreate, 0600);
  }
  if (!made) return std::move(made).error();
  CHECK_OK(copy_content(made->get(), entry, data));
  CHECK_OK(fs::set_owner(made->get(), owner_of(entry), group_of(entry)));
  // After the owner: a change of owner clears the setuid bits.
  CHECK_OK(fs::set_mode(made->get(), entry.mode));
  return fs::set_mtime(made->get(), entry.mtime);
}

Result<> LayerWriter::add_directory(const Place& at, const Entry& entry) {
  auto before = fs::stat_at(at.dir, at.name);
  if (!before && before.error().sys() != ENOENT) return std::move(before).error();
  bool exists = before && S_ISDIR(before->st_mode);
  if (before && !exists) CHECK_OK(clear(at));
  if (!exists) CHECK_OK(fs::make_dir_at(at.dir, at.name, 0700));
  // Removed and made anew in one layer: nothing of the layers below may shine through.
  if (before && is_whiteout(*before)) CHECK_OK(make_opaque(at.dir, at.name));
  return remember_directory(at.path, {entry.mode, owner_of(entry), group_of(entry), entry.mtime});
}

Result<> LayerWriter::add_symlink(const Place& at, const Entry& entry) {
  if (entry.target.empty() || entry.target.size() >= kMaxPathBytes) return refused("symbolic link with no or too long a target");
  CHECK_OK(clear(at));
  CHECK_OK(fs::make_symlink_at(at.dir, at.name, entry.target));
  CHECK_OK(fs::set_owner_at(at.dir, at.name, owner_of(entry), group_of(entry)));
  return fs::set_mtime_at(at.dir, at.name, entry.mtime);
}

Result<> LayerWriter::add_hard_link(const Place& at, const Entry& entry) {
  TRY(auto target, clean_path(entry.target));
  std::size_t slash = target.rfind('/');
  std::string above = slash == std::string::npos ? "." : target.substr(0, slash);
  std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
  auto dir = fs::open_beneath(layer_, above, kOpenDir);
  auto info = dir ? fs::stat_at(dir->get(), name) : Result<struct stat>(dir.error());
  if (target.empty() || !info || !S_ISREG(info->st_mode))
    return refused(cat("hard link to ", json_string(target.substr(0, 200)), ", which is no regular file of this layer"));
  if (target == at.path) return Ok{};
  CHECK_OK(clear(at));
  return fs::make_link_at(dir->get(), name, at.dir, at.name);
}

Result<> LayerWriter::add_fifo(const Place& at, const Entry& entry) {
  CHECK_OK(clear(at));
  CHECK_OK(fs::make_fifo_at(at.dir, at.name, 0600));
  CHECK_OK(fs::set_owner_at(at.dir, at.name, owner_of(entry), group_of(entry)));
  CHECK_OK(fs::set_mode_at(at.dir, at.name, entry.mode));
  return fs::set_mtime_at(at.dir, at.name, entry.mtime);
}

Result<> LayerWriter::add_whiteout(const Place& at) {
  if (at.name == kOpaque) return fs::set_xattr(at.dir, "trusted.overlay.opaque", "y");
  if (at.name.starts_with(kAufs)) return Ok{};  // bookkeeping of another union file system
  std::string hidden = at.name.substr(kWhiteout.size());
  if (hidden.empty() || hidden == "." || hidden == "..") return refused("whiteout of nothing");
  auto before = fs::stat_at(at.dir, hidden);
  if (!before && before.error().sys() == ENOENT) return fs::make_whiteout_at(at.dir, hidden);
  if (!before) return std::move(before).error();
  // A whiteout speaks of the layers below; what this layer itself brings stays.
  return S_ISDIR(before->st_mode) ? make_opaque(at.dir, hidden) : Result<>(Ok{});
}

Result<LayerWriter::Place> LayerWriter::place(const std::string& path) {
  std::size_t slash = path.rfind('/');
  std::string above = slash == std::string::npos ? "" : path.substr(0, slash);
  TRY(int dir, open_parent(above));
  return Place{dir, slash == std::string::npos ? path : path.substr(slash + 1), path};
}

// Entries of one directory come together; its descriptor is kept until another directory is needed.
Result<int> LayerWriter::open_parent(const std::string& path) {
  if (path.empty()) return layer_;
  if (parent_ && parent_path_ == path) return parent_.get();
  auto opened = fs::open_beneath(layer_, path, kOpenDir);
  if (!opened) opened = make_parents(path);
  if (!opened) return std::move(opened).error();
  parent_ = *std::move(opened);
  parent_path_ = path;
  return parent_.get();
}

Result<Fd> LayerWriter::make_parents(const std::string& path) {
  TRY(auto dir, fs::open_beneath(layer_, ".", kOpenDir));
  std::size_t begin = 0;
  while (begin < path.size()) {
    std::size_t end = std::min(path.find('/', begin), path.size());
    TRY(dir, make_parent(dir.get(), path.substr(begin, end - begin), path.substr(0, end)));
    begin = end + 1;
  }
  return dir;
}

Result<Fd> LayerWriter::make_parent(int above, const std::string& name, const std::string& path) {
  auto before = fs::stat_at(above, name);
  if (!before && before.error().sys() != ENOENT) return std::move(before).error();
  if (before && S_ISLNK(before->st_mode)) return refused("path goes through a symbolic link");
  if (before && !S_ISDIR(before->st_mode) && !is_whiteout(*before)) return refused("path goes through something that is not a directory");
  if (!before || is_whiteout(*before)) {
    CHECK_OK(budget_.charge_entry());
    if (before) CHECK_OK(fs::unlink_at(above, name));
    CHECK_OK(fs::make_dir_at(above, name, 0700));
    if (before) CHECK_OK(make_opaque(above, name));
    CHECK_OK(remember_directory(path, Attributes{}));
  }
  return fs::open_beneath(above, name, kOpenDir);
}

Result<> LayerWriter::make_opaque(int dir, const std::string& name) {
  TRY(auto opened, fs::open_beneath(dir, name, kOpenDir));
  return fs::set_xattr(opened.get(), "trusted.overlay.opaque", "y");
}

Result<> LayerWriter::remember_directory(const std::string& path, const Attributes& attributes) {
  if (directories_.insert_or_assign(path, attributes).second) directory_names_ += path.size() + sizeof(Attributes);
  if (directory_names_ > kMaxDirectoryNames) return Error(Errc::too_large, "the names of all directories are longer than 256 MiB");
  return Ok{};
}

Result<> LayerWriter::clear(const Place& at) {
  auto removed = fs::unlink_at(at.dir, at.name);
  if (removed || removed.error().sys() == ENOENT) return Ok{};
  if (removed.error().sys() != EISDIR) return std::move(removed).error();
  forget_directories(at.path);
  return fs::remove_tree(at.dir, at.name);
}

void LayerWriter::forget_directories(const std::string& path) {
  auto drop = [this](auto it) {
    directory_names_ -= it->first.size() + sizeof(Attributes);
    return directories_.erase(it);
  };
  if (auto own = directories_.find(path); own != directories_.end()) drop(own);
  std::string below = path + "/";
  for (auto it = directories_.lower_bound(below); it != directories_.end() && it->first.starts_with(below);) it = drop(it);
}

Result<> LayerWriter::finish() {
  // Children before parents: writing into a directory would change its time again.
  for (auto it = directories_.rbegin(); it != directories_.rend(); ++it) {
    TRY(auto dir, fs::open_beneath(layer_, it->first, kOpenDir));
    CHECK_OK(fs::set_owner(dir.get(), it->second.uid, it->second.gid));
    CHECK_OK(fs::set_mode(dir.get(), it->second.mode));
    CHECK_OK(fs::set_mtime(dir.get(), it->second.mtime));
  }
  return fs::set_mode(layer_, 0755);
}

}  // namespace osb::image
