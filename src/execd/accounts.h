// Users and groups of the sandbox, read from its own /etc/passwd and /etc/group.
//
// The files belong to the image or to hostile code: at most 1 MiB and 10 000 lines of each are looked at, a line that
// is not well formed is skipped, and nothing of the C library's name services is used.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace osb::execd {

struct Account {
  std::string name;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string home;
  std::string shell;
};

// Who a program runs as.
struct Identity {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;  // supplementary
  std::optional<Account> account;     // absent: the uid has no entry
};

inline constexpr std::size_t kMaxAccountFile = 1024 * 1024;
inline constexpr std::size_t kMaxAccountLines = 10'000;
inline constexpr std::size_t kMaxGroups = 256;
inline constexpr std::uint32_t kMaxId = 0xFFFFFFFE;  // 2^32-1 means "leave as it is" to the kernel

std::optional<Account> find_account(std::string_view passwd, std::uint32_t uid);
std::optional<Account> find_account(std::string_view passwd, std::string_view name);
std::optional<std::string> find_group_name(std::string_view group, std::uint32_t gid);
std::optional<std::uint32_t> find_group_id(std::string_view group, std::string_view name);
// Ids of the groups that list `user` as a member, without `primary`.
std::vector<std::uint32_t> find_groups(std::string_view group, std::string_view user, std::uint32_t primary);

// uid alone: primary gid and groups of its account; gid = uid when it has none. A gid given replaces the primary one.
Identity look_up(std::uint32_t uid, std::optional<std::uint32_t> gid);

}  // namespace osb::execd
