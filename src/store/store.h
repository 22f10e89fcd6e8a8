// Durable records in SQLite (WAL). Plain values in, plain values out; the only room that knows SQL.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/pool.h"
#include "model/sandbox.h"
#include "model/snapshot.h"
#include "model/volume.h"

namespace osb::store {

struct ImageRecord {
  std::string name;                 // "debian:12"
  std::string digest;               // of the config or manifest, "sha256:..."
  std::vector<std::string> layers;  // sha-256 hex of layer directories, topmost first
  std::string config_json;          // Env, WorkingDir, Entrypoint, Cmd, User: data, never trusted
  std::uint64_t size_bytes = 0;
  WallTime created_at;
};

// A create that was asked for with a key of the client's, so that asking again finds the same sandbox.
struct CreateKey {
  std::string owner;
  std::string key;
  std::string fingerprint;  // of the request
  std::string sandbox;      // id
  WallTime created_at;
};

class Store {
 public:
  // Opens or creates the database, checks its integrity, migrates it forward. A damaged, read-only or newer
  // database is a clear error that names the file and the way out; nothing is overwritten.
  static Result<std::unique_ptr<Store>> open(const std::string& path);
  virtual ~Store() = default;

  virtual Result<> put(const Sandbox& sandbox) = 0;  // insert or replace; durable against kill -9 when it returns
  // Both or neither: a crash cannot leave a sandbox without its key or the other way round.
  virtual Result<> put(const Sandbox& sandbox, const CreateKey& key) = 0;
  virtual Result<> erase(const SandboxId& id) = 0;  // idempotent; keys stay
  virtual Result<std::vector<Sandbox>> sandboxes() = 0;
  virtual Result<> erase_create_key(const std::string& owner, const std::string& key) = 0;  // idempotent
  virtual Result<std::vector<CreateKey>> create_keys() = 0;                                 // oldest first

  virtual Result<> put_image(const ImageRecord& image) = 0;
  virtual Result<> erase_image(const std::string& name) = 0;
  virtual Result<std::vector<ImageRecord>> images() = 0;

  virtual Result<> put_snapshot(const Snapshot& snapshot) = 0;  // insert or replace
  virtual Result<> erase_snapshot(const SnapshotId& id) = 0;    // idempotent
  virtual Result<std::vector<Snapshot>> snapshots() = 0;

  virtual Result<> put_volume(const Volume& volume) = 0;  // insert or replace
  virtual Result<> erase_volume(const VolumeId& id) = 0;  // idempotent
  virtual Result<std::vector<Volume>> volumes() = 0;

  virtual Result<> put_pool(const PoolRecord& pool) = 0;     // insert or replace
  virtual Result<> erase_pool(const std::string& name) = 0;  // idempotent
  virtual Result<std::vector<PoolRecord>> pools() = 0;       // by name
};

}  // namespace osb::store
