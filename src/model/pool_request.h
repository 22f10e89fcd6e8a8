// POST and PUT /pools: from the bytes of the body to a PoolRecord, judged once.
//
// A template is ours ({image, resourceLimits, extensions, entrypoint, env}) or a pod template as Kubernetes writes it
// ({metadata, spec: {containers: [{name, image, command, args, env, resources}]}}). Members that would have no effect are
// refused by name: a pool that silently left something out would be another one than its maker wanted.
#pragma once
#include <string_view>

#include "base/result.h"
#include "model/create_request.h"
#include "model/pool.h"

namespace osb {

inline constexpr std::uint32_t kMaxPoolSize = 10'000;

// name, spec and capacity; the rest is the caller's. Wrong types are Errc::malformed, refused values Errc::invalid_argument.
Result<PoolRecord> parse_pool(std::string_view body, const CreateDefaults& defaults);
// {"capacitySpec": {...}} and nothing else.
Result<PoolCapacity> parse_pool_resize(std::string_view body);
Result<> check_capacity(const PoolCapacity& capacity);
// Lowercase letters, digits, '-' and '.', a letter or digit at both ends, at most 253.
bool is_pool_name(std::string_view name);

}  // namespace osb
