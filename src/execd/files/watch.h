// GET /osb/v1/files/watch: what happens below a path, as events, until the client leaves or the path is gone.
//
// Bounded: 16 streams, 1024 directories each, 10 000 names looked at in a directory. What is not seen because of a bound, or because
// the kernel's queue was full, is told by an "overflow" event: the client looks again by itself.
#pragma once
#include "execd/sandbox.h"
#include "http/http.h"

namespace osb::execd::files {

inline constexpr std::size_t kMaxWatchStreams = 16;
inline constexpr std::size_t kMaxWatched = 1024;
inline constexpr std::size_t kMaxNamesSeen = 10'000;

Task<void> watch(Sandbox& sandbox, http::Request& request, http::Responder& responder);

}  // namespace osb::execd::files
