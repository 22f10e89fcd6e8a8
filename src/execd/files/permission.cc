#include "execd/files/permission.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "execd/accounts.h"
#include "execd/files/paths.h"
#include "execd/json.h"
#include "execd/setup.h"

namespace osb::execd::files {
namespace {

constexpr std::uint32_t kSame = 0xFFFFFFFF;

Error invalid(std::string what, std::string_view field) {
  return Error(Errc::invalid_argument, std::move(what)).with_code("INVALID_REQUEST_BODY").at(field);
}

Result<std::optional<mode_t>> parse_mode(const boost::json::object& object) {
  auto number = number_member(object, "mode");
  if (!number) return std::move(number).error().with_code("INVALID_REQUEST_BODY");
  if (!*number || **number == 0) return std::optional<mode_t>();
  std::int64_t digits = **number;
  bool octal = digits > 0 && digits <= 777 && digits % 10 < 8 && digits / 10 % 10 < 8;
  if (!octal) return invalid("\"mode\" must be three octal digits such as 644 or 755", "mode");
  return std::optional(static_cast<mode_t>((digits / 100) << 6 | (digits / 10 % 10) << 3 | digits % 10));
}

bool looks_numeric(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

Result<std::optional<std::uint32_t>> parse_owner(const boost::json::object& object, std::string_view field, Names& names) {
  auto text = text_member(object, field);
  if (!text) return std::move(text).error().with_code("INVALID_REQUEST_BODY");
  if (text->empty()) return std::optional<std::uint32_t>();
  auto id = field == "owner" ? names.user_id(*text) : names.group_id(*text);
  if (!id && looks_numeric(*text)) {
    id = parse_int<std::uint32_t>(*text);
    if (!id || *id > kMaxId) return invalid(cat("\"", field, "\" must be a name or an id"), field);
  }
  if (id && *id == kAgentUid) return invalid(cat("\"", field, "\" is reserved"), field);
  if (!id) log::warn("nobody has this name; left as it was", {{"field", field}, {"name", text->substr(0, 64)}});
  return id;
}

}  // namespace

Result<Permission> parse_permission(const boost::json::object& object, Names& names) {
  Permission permission;
  TRY(permission.mode, parse_mode(object));
  TRY(permission.uid, parse_owner(object, "owner", names));
  TRY(permission.gid, parse_owner(object, "group", names));
  return permission;
}

Result<> apply(const Permission& permission, const Fd& object, std::string_view path) {
  if (permission.uid || permission.gid) {
    if (::fchownat(object.get(), "", permission.uid.value_or(kSame), permission.gid.value_or(kSame), AT_EMPTY_PATH) != 0)
      return failed("change owner of", path, errno);
  }
  if (!permission.mode) return Ok{};
  // chmod on an O_PATH descriptor works only by its name.
  if (::chmod(cat("/proc/self/fd/", object.get()).c_str(), *permission.mode) != 0) return failed("change mode of", path, errno);
  return Ok{};
}

}  // namespace osb::execd::files
