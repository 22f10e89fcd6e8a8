// POST /sandboxes: from the bytes of the body to a SandboxSpec, parsed and validated once.
//
// Wrong shape (types, missing members, timeout below the minimum) is Errc::malformed; a value we refuse is
// Errc::invalid_argument with a code and the field; unknown members are ignored.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/limits.h"
#include "model/policy.h"
#include "model/sandbox.h"

namespace osb {

inline constexpr std::int64_t kMinTimeoutSeconds = 60;
inline constexpr std::int64_t kMaxTimeoutSeconds = 100ll * 366 * 86400;  // past it a deadline is a typing error
inline constexpr std::size_t kMaxEnvEntries = 1000;
inline constexpr std::size_t kMaxEnvBytes = 128 * 1024;
inline constexpr std::size_t kMaxEntrypointItems = 1000;
inline constexpr std::size_t kMaxEntrypointBytes = 128 * 1024;
inline constexpr std::size_t kMaxMetadataEntries = 256;
inline constexpr std::size_t kMaxExtensions = 64;
inline constexpr std::size_t kMaxImageBytes = 512;
inline constexpr std::size_t kMaxImageAuthBytes = 16 * 1024;

// What holds when the request does not say, and what the operator lets it say.
struct CreateDefaults {
  Limits limits;
  Policy policy;
  std::optional<std::int64_t> max_timeout_seconds;  // nullopt = no cap; with a cap a timeout must be given
  std::string arch;                                 // "amd64" | "arm64"; "" = the one we were built for
};

// Finds the pool that a request names; what it gives holds where the request does not say.
using FindPool = std::function<Result<SandboxSpec>(const std::string& name)>;

Result<SandboxSpec> parse_create(std::string_view body, const CreateDefaults& defaults, const FindPool& find_pool = {});

// The parts that every way to ask for a sandbox shares; the errors name image.uri, env.NAME and metadata.
Result<std::string> check_image_reference(std::string image);
Result<> check_environment(const StringMap& env);
Result<> check_labels(const StringMap& metadata);

// Words of a command line: blanks separate, '...' and "..." and \ quote as in a POSIX shell; nothing is expanded.
Result<std::vector<std::string>> split_words(std::string_view line);

}  // namespace osb
