// For tests only: a store made of memory whose writes fail on demand.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "store/store.h"

namespace osb::lifecycle {

class FakeStore : public store::Store {
 public:
  std::map<std::string, Sandbox> rows;
  std::map<std::string, store::ImageRecord> image_rows;
  std::map<std::pair<std::string, std::string>, store::CreateKey> keys;
  std::optional<Error> failing;  // every write fails with this while it is set
  std::size_t puts = 0;

  Result<> put(const Sandbox& sandbox) override {
    if (failing) return *failing;
    ++puts;
    rows.insert_or_assign(sandbox.id.text(), sandbox);
    return Ok{};
  }
  Result<> put(const Sandbox& sandbox, const store::CreateKey& key) override {
    CHECK_OK(put(sandbox));
    keys.insert_or_assign({key.owner, key.key}, key);
    return Ok{};
  }
  Result<> erase_create_key(const std::string& owner, const std::string& key) override {
    keys.erase({owner, key});
    return Ok{};
  }
  Result<std::vector<store::CreateKey>> create_keys() override {
    std::vector<store::CreateKey> out;
    for (const auto& [name, key] : keys) out.push_back(key);
    return out;
  }
  Result<> erase(const SandboxId& id) override {
    if (failing) return *failing;
    rows.erase(id.text());
    return Ok{};
  }
  Result<std::vector<Sandbox>> sandboxes() override {
    std::vector<Sandbox> out;
    for (const auto& [id, sandbox] : rows) out.push_back(sandbox);
    return out;
  }
  Result<> put_image(const store::ImageRecord& image) override {
    image_rows[image.name] = image;
    return Ok{};
  }
  Result<> erase_image(const std::string& name) override {
    image_rows.erase(name);
    return Ok{};
  }
  Result<std::vector<store::ImageRecord>> images() override {
    std::vector<store::ImageRecord> out;
    for (const auto& [name, image] : image_rows) out.push_back(image);
    return out;
  }

  std::map<std::string, Snapshot> snapshot_rows;
  Result<> put_snapshot(const Snapshot& snapshot) override {
    if (failing) return *failing;
    snapshot_rows.insert_or_assign(snapshot.id.text(), snapshot);
    return Ok{};
  }
  Result<> erase_snapshot(const SnapshotId& id) override {
    if (failing) return *failing;
    snapshot_rows.erase(id.text());
    return Ok{};
  }
  Result<std::vector<Snapshot>> snapshots() override {
    std::vector<Snapshot> out;
    for (const auto& [id, snapshot] : snapshot_rows) out.push_back(snapshot);
    return out;
  }

  std::map<std::string, Volume> volume_rows;
  Result<> put_volume(const Volume& volume) override {
    if (failing) return *failing;
    volume_rows.insert_or_assign(volume.id.text(), volume);
    return Ok{};
  }
  Result<> erase_volume(const VolumeId& id) override {
    if (failing) return *failing;
    volume_rows.erase(id.text());
    return Ok{};
  }
  Result<std::vector<Volume>> volumes() override {
    std::vector<Volume> out;
    for (const auto& [id, volume] : volume_rows) out.push_back(volume);
    return out;
  }

  std::map<std::string, PoolRecord> pool_rows;
  Result<> put_pool(const PoolRecord& pool) override {
    if (failing) return *failing;
    pool_rows.insert_or_assign(pool.name, pool);
    return Ok{};
  }
  Result<> erase_pool(const std::string& name) override {
    if (failing) return *failing;
    pool_rows.erase(name);
    return Ok{};
  }
  Result<std::vector<PoolRecord>> pools() override {
    std::vector<PoolRecord> out;
    for (const auto& [name, pool] : pool_rows) out.push_back(pool);
    return out;
  }
};

}  // namespace osb::lifecycle
