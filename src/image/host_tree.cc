#include "image/host_tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/log.h"
#include "base/text.h"
#include "image/harmless.h"
#include "image/skeleton.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"

namespace osb::image {
namespace {

namespace fs = sys::fs;

constexpr std::size_t kMaxFile = 4u << 20;
constexpr std::uint64_t kMaxTotal = 16u << 20;
constexpr std::size_t kMaxNames = 5000;
constexpr int kMaxDepth = 6;
constexpr int kOpenDir = O_RDONLY | O_DIRECTORY;

enum class Check { text, library_cache, certificates };

struct FileRule {
  const char* path;
  Check check = Check::text;
};

// Single files, copied where the host has them.
constexpr FileRule kFiles[] = {
    {"etc/os-release"}, {"etc/debian_version"}, {"etc/lsb-release"}, {"etc/ld.so.cache", Check::library_cache},
    {"etc/ld.so.conf"}, {"etc/localtime"},      {"etc/timezone"},    {"etc/mime.types"},
    {"etc/inputrc"},    {"etc/services"},       {"etc/protocols"},   {"etc/locale.alias"},
};

// Directories, with the endings of the names that may come along.
struct DirRule {
  const char* path;  // a last component ending in * stands for every directory that begins so
  std::array<const char*, 10> endings;
  Check check = Check::text;
};
constexpr DirRule kDirs[] = {
    {"etc/ld.so.conf.d", {".conf"}},
    {"etc/alternatives", {}},  // links only
    {"etc/ssl/certs", {".pem", ".crt", ".0", ".1", ".2", "cacerts"}, Check::certificates},
    {"etc/pki/tls/certs", {".pem", ".crt"}, Check::certificates},
    {"etc/pki/ca-trust/extracted/pem", {".pem"}, Check::certificates},
    {"etc/fonts", {".conf"}},
    {"etc/terminfo", {""}},
    {"etc/python3*", {".py", "debian_config"}},
    {"etc/java-*", {".properties", ".properties.ja", ".cfg", ".jfc", ".policy", ".certs", ".dat", "java.security"}},
};

bool ends_in_one_of(std::string_view name, const std::array<const char*, 10>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const char* end) { return end != nullptr && name.ends_with(end); });
}

bool everyone_may_read(const struct stat& info) { return (info.st_mode & S_IROTH) != 0; }
bool everyone_may_enter(const struct stat& info) { return (info.st_mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH); }

// Where a link at `path` points, as a path from the root; "" when it climbs above it.
std::string resolved_text(const std::string& path, std::string_view target) {
  std::vector<std::string_view> parts;
  std::string above = path.substr(0, path.rfind('/'));
  if (!target.starts_with('/')) parts = split(above, '/');
  for (std::string_view part : split(target, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..")
      parts.push_back(part);
    else if (parts.empty())
      return {};
    else
      parts.pop_back();
  }
  std::string whole;
  for (std::string_view part : parts) whole += cat(whole.empty() ? "" : "/", part);
  return whole;
}

class Gatherer {
 public:
  Gatherer(int root, Tree& tree) : root_(root), tree_(tree) {}

  void copy_top_links();
  void copy_file(const std::string& path, Check check);
  void copy_dirs(const DirRule& rule);
  bool has_bash() const {
    return static_cast<bool>(fs::open_beneath(root_, "usr/bin/bash", O_PATH)) ||
           static_cast<bool>(fs::open_beneath(root_, "bin/bash", O_PATH));
  }

 private:
  void copy_dir(const std::string& path, const DirRule& rule, int depth);
  void copy_link(const std::string& path, int dir, const std::string& name);
  void copy_regular(const std::string& path, Check check);

  int root_;
  Tree& tree_;
  std::uint64_t total_ = 0;
};

// /bin and its kind exactly as the host has them: a link into /usr, or a directory for the launcher to mount on.
void Gatherer::copy_top_links() {
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    auto info = fs::stat_at(root_, name);
    if (!info) continue;
    if (S_ISDIR(info->st_mode)) tree_.add_dir(name);
    if (!S_ISLNK(info->st_mode)) continue;
    auto target = fs::read_link_at(root_, name);
    if (target && resolved_text(cat("/", name), *target).starts_with("usr/")) tree_.add_link(name, *target);
  }
}

void Gatherer::copy_file(const std::string& path, Check check) {
  std::size_t slash = path.rfind('/');
  auto dir = fs::open_beneath(root_, path.substr(0, slash), kOpenDir);
  if (!dir) return;
  std::string name = path.substr(slash + 1);
  auto info = fs::stat_at(dir->get(), name);
  if (!info) return;
  if (S_ISLNK(info->st_mode)) copy_link(path, dir->get(), name);
  if (S_ISREG(info->st_mode)) copy_regular(path, check);
}

void Gatherer::copy_link(const std::string& path, int dir, const std::string& name) {
  auto target = fs::read_link_at(dir, name);
  if (!target) return;
  std::string to = resolved_text(path, *target);
  bool stays = to.starts_with("usr/");
  for (const char* along : {"etc/alternatives/", "etc/ssl/certs/", "etc/fonts/", "etc/pki/"})
    stays = stays || (to.starts_with(along) && path.starts_with("etc/"));
  if (stays) tree_.add_link(path, *target);
}

void Gatherer::copy_regular(const std::string& path, Check check) {
  auto fd = fs::open_beneath(root_, path, O_RDONLY | O_NONBLOCK);
  auto info = fd ? fs::stat_fd(fd->get()) : Result<struct stat>(fd.error());
  if (!info || !S_ISREG(info->st_mode) || !everyone_may_read(*info)) return;
  auto content = fs::read_to_end(fd->get(), kMaxFile);
  if (!content || total_ + content->size() > kMaxTotal) {
    log::warn("host file is too large for the host image", {{"file", path}});
    return;
  }
  bool fine =
      check == Check::certificates ? is_public_certificates(*content) : check == Check::library_cache || is_free_of_secrets(*content);
  if (!fine) return;
  total_ += content->size();
  tree_.add_file(path, *std::move(content), 0444 | (info->st_mode & 0111));
}

void Gatherer::copy_dirs(const DirRule& rule) {
  std::string path = rule.path;
  if (!path.ends_with('*')) return copy_dir(path, rule, 0);
  std::size_t slash = path.rfind('/');
  std::string above = path.substr(0, slash);
  std::string prefix = path.substr(slash + 1, path.size() - slash - 2);
  auto dir = fs::open_beneath(root_, above, kOpenDir);
  auto names = dir ? fs::list_dir(dir->get(), kMaxNames) : Result<std::vector<std::string>>(dir.error());
  if (!names) return;
  for (const std::string& name : *names)
    if (name.starts_with(prefix)) copy_dir(cat(above, "/", name), rule, 0);
}

void Gatherer::copy_dir(const std::string& path, const DirRule& rule, int depth) {
  auto dir = fs::open_beneath(root_, path, kOpenDir);
  auto info = dir ? fs::stat_fd(dir->get()) : Result<struct stat>(dir.error());
  if (!info || !everyone_may_enter(*info) || depth > kMaxDepth) return;
  auto names = fs::list_dir(dir->get(), kMaxNames);
  if (!names) return;
  tree_.add_dir(path);
  for (const std::string& name : *names) {
    std::string inner = cat(path, "/", name);
    auto what = fs::stat_at(dir->get(), name);
    if (!what || name == "private") continue;
    if (S_ISDIR(what->st_mode)) copy_dir(inner, rule, depth + 1);
    if (S_ISLNK(what->st_mode)) copy_link(inner, dir->get(), name);
    if (S_ISREG(what->st_mode) && ends_in_one_of(name, rule.endings)) copy_regular(inner, rule.check);
  }
}

}  // namespace

Result<Tree> host_tree(const std::string& host_root) {
  TRY(auto root, fs::open_directory(host_root));
  Tree tree;
  Gatherer host(root.get(), tree);
  add_skeleton(tree, host.has_bash() ? "/bin/bash" : "/bin/sh");
  host.copy_top_links();
  for (const FileRule& rule : kFiles) host.copy_file(rule.path, rule.check);
  for (const DirRule& rule : kDirs) host.copy_dirs(rule);
  return tree;
}

}  // namespace osb::image
