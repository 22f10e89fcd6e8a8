#include "execd/accounts.h"

#include <array>

#include "base/text.h"
#include "execd/small_file.h"

namespace osb::execd {
namespace {

// Takes one line off the front; false at the end of the text or after too many lines.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text.substr(0, kMaxAccountFile)) {}
  bool next(std::string_view& line) {
    if (text_.empty() || ++count_ > kMaxAccountLines) return false;
    auto end = text_.find('\n');
    line = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    return true;
  }

 private:
  std::string_view text_;
  std::size_t count_ = 0;
};

// Exactly N fields separated by ':', or nothing.
template <std::size_t N>
bool fields_of(std::string_view line, std::array<std::string_view, N>& fields) {
  for (std::size_t i = 0; i < N; ++i) {
    auto end = line.find(':');
    bool last = i + 1 == N;
    if (last != (end == std::string_view::npos)) return false;
    fields[i] = line.substr(0, end);
    if (!last) line.remove_prefix(end + 1);
  }
  return true;
}

std::optional<std::uint32_t> parse_id(std::string_view text) {
  auto id = parse_int<std::uint32_t>(text);
  return id && *id <= kMaxId ? id : std::nullopt;
}

bool lists(std::string_view members, std::string_view user) {
  while (!members.empty()) {
    auto end = members.find(',');
    if (members.substr(0, end) == user) return true;
    members.remove_prefix(end == std::string_view::npos ? members.size() : end + 1);
  }
  return false;
}

bool plain_text(std::string_view text) { return text.find('\0') == std::string_view::npos; }

// The first well-formed line that has this name, or this id where no name is given.
std::optional<Account> first_account(std::string_view passwd, std::string_view name, std::optional<std::uint32_t> id) {
  Lines lines(passwd);
  std::array<std::string_view, 7> f;
  for (std::string_view line; lines.next(line);) {
    if (!fields_of(line, f) || f[0].empty() || !plain_text(line)) continue;
    auto uid = parse_id(f[2]);
    auto gid = parse_id(f[3]);
    if (!uid || !gid || (id ? *uid != *id : f[0] != name)) continue;
    return Account{std::string(f[0]), *uid, *gid, std::string(f[5]), std::string(f[6])};
  }
  return std::nullopt;
}

std::optional<std::pair<std::string, std::uint32_t>> first_group(std::string_view group, std::string_view name,
                                                                 std::optional<std::uint32_t> id) {
  Lines lines(group);
  std::array<std::string_view, 4> f;
  for (std::string_view line; lines.next(line);) {
    if (!fields_of(line, f) || f[0].empty() || !plain_text(line)) continue;
    auto gid = parse_id(f[2]);
    if (gid && (id ? *gid == *id : f[0] == name)) return std::pair(std::string(f[0]), *gid);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Account> find_account(std::string_view passwd, std::uint32_t uid) { return first_account(passwd, {}, uid); }
std::optional<Account> find_account(std::string_view passwd, std::string_view name) { return first_account(passwd, name, std::nullopt); }

std::optional<std::string> find_group_name(std::string_view group, std::uint32_t gid) {
  auto found = first_group(group, {}, gid);
  return found ? std::optional(std::move(found->first)) : std::nullopt;
}

std::optional<std::uint32_t> find_group_id(std::string_view group, std::string_view name) {
  auto found = first_group(group, name, std::nullopt);
  return found ? std::optional(found->second) : std::nullopt;
}

std::vector<std::uint32_t> find_groups(std::string_view group, std::string_view user, std::uint32_t primary) {
  std::vector<std::uint32_t> found;
  Lines lines(group);
  std::array<std::string_view, 4> f;
  for (std::string_view line; found.size() < kMaxGroups && lines.next(line);) {
    if (!fields_of(line, f) || !lists(f[3], user)) continue;
    auto gid = parse_id(f[2]);
    if (gid && *gid != primary) found.push_back(*gid);
  }
  return found;
}

Identity look_up(std::uint32_t uid, std::optional<std::uint32_t> gid) {
  Identity who{.uid = uid, .gid = gid.value_or(uid), .groups = {}, .account = {}};
  auto passwd = read_small_file("/etc/passwd", kMaxAccountFile);
  if (passwd) who.account = find_account(*passwd, uid);
  if (!who.account) return who;
  if (!gid) who.gid = who.account->gid;
  auto group = read_small_file("/etc/group", kMaxAccountFile);
  if (group) who.groups = find_groups(*group, who.account->name, who.gid);
  return who;
}

}  // namespace osb::execd
