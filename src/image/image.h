// Images: a name that resolves to read-only layer directories, topmost first.
//
// An image comes from a file (import) or from a registry (pull).
//
// Layer directories live in `<root>/layers/<sha256 hex>/` and are complete once they exist (built beside, then renamed).
// The image room never mounts anything and never runs anything.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
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
  // Of each layer, in the order of `layers`; empty where a record of an older version does not say.
  std::vector<std::uint64_t> layer_bytes = {};
};

// A name and a password for a registry. Lives in memory only: never logged, never stored, never part of an error.
struct RegistryAuth {
  std::string username;
  std::string password;
  bool empty() const { return username.empty() && password.empty(); }
};

// What the operator says about registries.
struct Registries {
  std::string default_registry;                // "host[:port][/prefix]" for names that say none; "" = such names are not pulled
  std::vector<std::string> insecure;           // "host" or "host:port": plain http is fine
  std::vector<std::string> trusted_hosts;      // "host" or "host:port": private addresses and token services are fine
  std::map<std::string, RegistryAuth> logins;  // by registry as names write it
  std::string ca_file;                         // further CAs; "" = the system's alone
};

// One layer of a pull under way.
struct LayerProgress {
  enum class State { waiting, downloading, downloaded, unpacking, done, exists };
  std::string digest;  // "sha256:..." of the blob
  State state = State::waiting;
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;
};
std::string_view name_of(LayerProgress::State state);

// How much the store holds, for people and for the collector.
struct StoredImage {
  Image image;
  std::int64_t used_at_micros = 0;  // wall time when it was made or a sandbox was last made from it
  bool bare = false;                // it has no name any more, only its digest
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

  struct PullOptions {
    RegistryAuth auth;  // empty: what the configuration has for that registry
    std::stop_token stop;
    std::function<void(const std::vector<LayerProgress>&)> progress;  // from any thread, one call at a time
  };
  // From the registry the reference names; replaces the image of that name. Blocks for as long as it takes.
  virtual Result<Image> pull(const std::string& reference, const PullOptions& options) = 0;
  // Could this be pulled at all? not_found or invalid_argument, with the way out, when not. Costs nothing.
  virtual Result<> check_pullable(const std::string& reference) const = 0;
  virtual void set_registries(Registries registries) = 0;

  // A sandbox was made from it: it is the most recently used one now. Costs one system call, at most once a minute.
  virtual void note_use(const Image& image) = 0;
  // As long as the hold lives no other process that has this store open removes the image. Empty where that failed.
  using Hold = std::shared_ptr<void>;
  virtual Hold hold(const Image& image) = 0;
  // Least recently used first; the host image is not among them.
  virtual std::vector<StoredImage> by_last_use() const = 0;
  virtual std::uint64_t stored_bytes() const = 0;  // of all layers, each once
  // Layers that something outside the store's own records needs (snapshots): never collected. Set before the first
  // removal; called from any thread, under the store's lock, and must not call the store.
  using InUse = std::function<std::vector<std::string>()>;
  virtual void set_in_use(InUse in_use) = 0;
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
