// The schema, as the list of steps that led to it. A step is never changed once it was published; a new one is added.
#pragma once
#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace osb::store {

inline constexpr std::int64_t kApplicationId = 0x4F534258;  // "OSBX": the file is ours

std::int64_t latest_version();
// Brings the database from its user_version to latest_version(), each step in a transaction of its own.
// Errc::unsupported when it is newer than we are.
Result<> migrate(Database& db);

}  // namespace osb::store
