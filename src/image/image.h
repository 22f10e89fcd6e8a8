// Images: a name that resolves to read-only layer directories, topmost first.
//
// Layer directories live in `<root>/layers/<sha256 hex>/` and are complete once they exist (built beside, then renamed).
// The image room never mounts anything and never runs anything.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace osb::image {

struct Image {
  std::string name;                 // "host", "debian:12"
  std::string digest;               // "sha256:..."; "host" for the built-in one
  std::vector<std::string> layers;  // sha-256 hex, topmost first
  bool host_view = false;           // the launcher adds the host's /usr (and /bin, /lib* where they are directories)
  std::vector<std::pair<std::string, std::string>> env;
  std::string working_dir;  // "" = none
  std::uint64_t size_bytes = 0;
  std::string created_at;           // RFC 3339
  std::size_t snapshot_layers = 0;  // so many of the topmost layers are snapshots
};

// A place for a layer under way: a directory of the store's tmp/, gone with its owner.
class LayerDraft {
 public:
  virtual ~LayerDraft() = default;
  virtual int dir() const = 0;                  // locked for as long as anybody holds a copy of it
  virtual const std::string& name() const = 0;  // 32 hex
};

class Store {
 public:
  // `root` is a directory of ours, made 0700 when missing. Half-built layers of a crash are removed.
  static Result<std::unique_ptr<Store>> open(const std::string& root);
  virtual ~Store() = default;

  // "host" always resolves. Errc::not_found with a hint (image import / image ls) otherwise.
  virtual Result<Image> resolve(const std::string& reference) const = 0;
  virtual std::vector<Image> list() const = 0;

  struct ImportOptions {
    std::string name;                       // "" = taken from the archive where it has one
    std::uint64_t max_bytes = 16ull << 30;  // unpacked
    std::uint64_t max_entries = 2'000'000;
    std::function<void(std::uint64_t bytes, std::uint64_t entries)> progress;
  };
  // A root file system tar (any compression), a docker-archive, an OCI layout (directory or tar). Rules R-TAR.
  virtual Result<Image> import(const std::string& path, const ImportOptions& options) = 0;
  // Removes the name; layers nobody refers to go with it. Errc::conflict while `in_use` says a sandbox runs on it.
  virtual Result<> remove(const std::string& reference, const std::function<bool(const Image&)>& in_use) = 0;

  // Snapshots: images without a name, found by the id of the snapshot. Their layers, those of the base among them, stay
  // for as long as the snapshot does, whatever happens to the name of the base.
  virtual Result<std::unique_ptr<LayerDraft>> begin_snapshot() = 0;
  // The draft holds `layer`, which comes to lie on top of `base`. Complete and on disk when it returns.
  virtual Result<Image> commit_snapshot(const LayerDraft& draft, const std::string& id, const Image& base, std::uint64_t bytes) = 0;
  virtual Result<Image> snapshot(const std::string& id) const = 0;
  virtual Result<std::vector<std::string>> snapshots() const = 0;  // ids
  virtual Result<> remove_snapshot(const std::string& id) = 0;     // idempotent; layers nobody refers to go with it
};

}  // namespace osb::image
