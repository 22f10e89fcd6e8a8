// Secret files: made once, readable by their owner only, never half-written.
#pragma once
#include <cstddef>
#include <string>

#include "api/auth.h"
#include "base/result.h"
#include "daemon/config.h"
#include "image/image.h"

namespace osb::daemon {

// The text of the file, without the line end. A missing file is made first: `bytes` random bytes as hex, mode 0600,
// complete the moment it appears under its name. A file others may read or write is refused.
Result<std::string> read_or_make_secret(const std::string& path, std::size_t bytes);

// The keys that open the TCP door: the environment's or the key file's as "default", and those of auth.keys.
Result<api::Keys> load_keys(const Config& config);

// What the image store may know of registries: the lists as they are, the passwords from their files (0600).
Result<image::Registries> load_registries(const Config& config);

}  // namespace osb::daemon
