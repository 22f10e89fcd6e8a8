// Permission: owner, group and mode as a client writes them, checked before anything is touched.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>

#include "base/fd.h"
#include "base/result.h"
#include "execd/files/info.h"

namespace osb::execd::files {

struct Permission {
  std::optional<mode_t> mode;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
};

// "mode" is the octal digits as a number, 0 or absent leaves it; set-id and sticky bits are refused. "owner" and "group" are
// names or numbers; a name nobody has leaves it, as clients of this protocol expect.
Result<Permission> parse_permission(const boost::json::object& object, Names& names);
// Owner first: changing it takes set-id bits away. `object` may be O_PATH.
Result<> apply(const Permission& permission, const Fd& object, std::string_view path);

}  // namespace osb::execd::files
