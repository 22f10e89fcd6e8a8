// POST /files/upload: pairs of parts "metadata" and "file", written as they come, put in place when all have come.
#pragma once
#include "execd/setup.h"
#include "http/http.h"

namespace osb::execd::files {

inline constexpr std::size_t kMaxUploads = 1000;             // files of one request
inline constexpr std::size_t kMaxMetadata = 16 * 1024;       // bytes of one metadata part
inline constexpr std::size_t kMaxWaitingMetadata = 1 << 20;  // bytes of those whose file has not come yet
inline constexpr std::size_t kMaxUploadDirectories = 128;    // different ones in one request

Task<Result<>> upload(const Setup& setup, http::Request& request);

}  // namespace osb::execd::files
