// Who used what when, and how much there is: what a collector needs to choose.
#include <fcntl.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "image/file_store.h"
#include "image/reference.h"
#include "sys/fs_open.h"

namespace osb::image {
namespace {

namespace fs = sys::fs;

constexpr std::int64_t kNoteEveryMicros = 60'000'000;

std::int64_t micros_of(const struct stat& info) { return info.st_mtim.tv_sec * 1'000'000ll + info.st_mtim.tv_nsec / 1000; }

}  // namespace

// The time of the record's file is the time of the last use: no second truth beside the record.
void FileStore::note_use(const Image& image) {
  if (image.name == kHostName) return;
  std::string file = file_of(image.name);
  auto info = fs::stat_at(images_.get(), file);
  auto now = wall_now().micros;
  if (!info || now - micros_of(*info) < kNoteEveryMicros) return;
  struct timespec when{.tv_sec = now / 1'000'000, .tv_nsec = now % 1'000'000 * 1000};
  if (auto set = fs::set_mtime_at(images_.get(), file, when); !set) log::debug("use not noted", {{"error", set.error().what()}});
}

// A shared lock on the topmost layer. Private daemons work on the store of the public one: neither knows the sandboxes of
// the other, and the kernel lets a layer go from under a mount without a word.
Store::Hold FileStore::hold(const Image& image) {
  auto dir = fs::open_beneath(layers_.get(), image.layers.front(), O_RDONLY | O_DIRECTORY);
  if (!dir) return {};
  auto held = std::make_shared<Fd>(*std::move(dir));
  auto locked = fs::lock_shared(held->get(), fs::LockWait::no);
  if (!locked || !*locked) return {};
  return held;
}

Result<> FileStore::check_unheld(const Image& image) const {
  auto dir = fs::open_beneath(layers_.get(), image.layers.front(), O_RDONLY | O_DIRECTORY);
  if (!dir) return Ok{};  // without its layer nothing can run on it
  TRY(bool alone, fs::lock_exclusive(dir->get(), fs::LockWait::no));
  if (alone) return Ok{};
  return Error(Errc::conflict, cat("a sandbox of another daemon runs on image ", image.name)).with_hint("wait until it has ended");
}

std::vector<StoredImage> FileStore::by_last_use() const {
  std::vector<StoredImage> out;
  for (Image& image : list()) {
    if (image.name == kHostName) continue;
    auto info = fs::stat_at(images_.get(), file_of(image.name));
    bool bare = image.name.starts_with("sha256:");
    out.push_back({std::move(image), info ? micros_of(*info) : 0, bare});
  }
  std::sort(out.begin(), out.end(), [](const StoredImage& a, const StoredImage& b) { return a.used_at_micros < b.used_at_micros; });
  return out;
}

std::uint64_t FileStore::stored_bytes() const {
  std::map<std::string, std::uint64_t> layers;
  for (const Image& image : list()) {
    bool told = image.layer_bytes.size() == image.layers.size();
    for (std::size_t i = 0; i < image.layers.size(); ++i) {
      auto [at, fresh] = layers.try_emplace(image.layers[i], 0);
      if (!fresh) continue;
      if (told) {
        at->second = image.layer_bytes[i];
      } else if (auto size = layer_size(image.layers[i])) {
        at->second = *size;
      }
    }
  }
  std::uint64_t total = 0;
  for (const auto& [layer, bytes] : layers) total += bytes;
  return total;
}

}  // namespace osb::image
