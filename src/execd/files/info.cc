#include "execd/files/info.h"

#include "base/clock.h"
#include "base/text.h"
#include "execd/accounts.h"
#include "execd/small_file.h"

namespace osb::execd::files {
namespace {

constexpr std::size_t kMaxRemembered = 256;

std::string time_text(const struct timespec& at) { return format_rfc3339({at.tv_sec * 1'000'000LL + at.tv_nsec / 1000}); }

}  // namespace

void Names::load() {
  if (loaded_) return;
  loaded_ = true;
  if (auto text = read_small_file("/etc/passwd", kMaxAccountFile)) passwd_ = *std::move(text);
  if (auto text = read_small_file("/etc/group", kMaxAccountFile)) group_ = *std::move(text);
}

std::string Names::user(std::uint32_t uid) {
  if (auto known = users_.find(uid); known != users_.end()) return known->second;
  load();
  auto account = find_account(passwd_, uid);
  std::string name = account ? account->name : cat(uid);
  if (users_.size() < kMaxRemembered) users_.emplace(uid, name);
  return name;
}

std::string Names::group(std::uint32_t gid) {
  if (auto known = groups_.find(gid); known != groups_.end()) return known->second;
  load();
  std::string name = find_group_name(group_, gid).value_or(cat(gid));
  if (groups_.size() < kMaxRemembered) groups_.emplace(gid, name);
  return name;
}

std::optional<std::uint32_t> Names::user_id(std::string_view name) {
  load();
  auto account = find_account(passwd_, name);
  return account ? std::optional(account->uid) : std::nullopt;
}

std::optional<std::uint32_t> Names::group_id(std::string_view name) {
  load();
  return find_group_id(group_, name);
}

std::string_view type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "directory";
    case S_IFLNK: return "symlink";
    default: return "other";
  }
}

int mode_number(mode_t mode) {
  int bits = static_cast<int>(mode & 0777);
  return (bits >> 6) * 100 + (bits >> 3 & 7) * 10 + (bits & 7);
}

void append_info(std::string& out, const std::string& path, const struct stat& info, Names& names) {
  out += "{\"path\":";
  append_json_string(out, path);
  out += cat(",\"type\":\"", type_of(info.st_mode), "\",\"size\":", info.st_size, ",\"modified_at\":\"", time_text(info.st_mtim));
  out += cat("\",\"created_at\":\"", time_text(info.st_ctim), "\",\"owner\":");
  append_json_string(out, names.user(info.st_uid));
  out += ",\"group\":";
  append_json_string(out, names.group(info.st_gid));
  out += cat(",\"mode\":", mode_number(info.st_mode), "}");
}

}  // namespace osb::execd::files
