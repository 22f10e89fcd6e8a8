// One blob: from the registry to a file of its own, whole and with the right digest, or not at all.
//
// <root>/downloads/<hex>.part grows as bytes arrive and survives a cut, a cancel and a crash; the next attempt goes on
// where it ends. <root>/downloads/<hex> is complete and verified. Whoever needs a blob links it into its own work
// directory, so the downloads folder may be trimmed at any time.
#pragma once
#include <functional>
#include <stop_token>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "image/registry/session.h"

namespace osb::image::registry {

struct BlobRequest {
  std::string hex;
  std::uint64_t size = 0;
  std::function<void(std::uint64_t bytes)> progress;  // how much is here
};

class Downloads {
 public:
  // `dir` is the downloads folder and outlives this.
  explicit Downloads(int dir) : dir_(dir) {}

  // Links the finished blob as `to_dir`/<hex>. Two pulls that want the same blob: the second waits, then shares it.
  Result<> fetch(Session& session, const BlobRequest& request, int to_dir, const std::stop_token& stop);
  // Complete blobs that an image has been made of need not stay.
  void forget(const std::string& hex);
  // Removes what is older than a week, then the oldest until `max_bytes` are kept. Files being written stay.
  Result<> trim(std::uint64_t max_bytes);

 private:
  Result<bool> link_finished(const BlobRequest& request, int to_dir);
  Result<Fd> open_part(const std::string& name, const std::stop_token& stop);
  int dir_;
};

inline constexpr std::uint64_t kMaxKeptDownloads = 4ull << 30;

}  // namespace osb::image::registry
