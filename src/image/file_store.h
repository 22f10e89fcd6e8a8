// The store on disk. Files are the only truth: several processes may have it open, and what one writes the next call of
// another reads.
//
//   <root>/            0700
//     lock             held while names or layers change (never while an import unpacks)
//     layers/<hex>/    complete layers
//     images/*.json    one record a name (record.h)
//     snapshots/*.json one record a snapshot, named by its id
//     tmp/<random>/    imports, pulls and snapshots under way, and what is being removed
//     downloads/       blobs of pulls, whole or in part (registry/blob.h)
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/fd.h"
#include "image/budget.h"
#include "image/image.h"
#include "image/importer.h"
#include "sys/fs_file.h"

namespace osb::image {

struct StoreOptions {
  std::string host_root = "/";  // another one in tests
  sys::fs::Durable durable = sys::fs::Durable::yes;
  BudgetLimits limits;  // its bytes and entries are those of each import's own options
};

// unsupported for anybody but root, whose store has the host image only.
Result<> check_may_add();

// Safe to use from several threads: after open() only files change.
class FileStore : public Store {
 public:
  static Result<std::unique_ptr<FileStore>> open(const std::string& root, StoreOptions options);

  Result<Image> resolve(const std::string& reference) const override;
  std::vector<Image> list() const override;
  Result<Image> import(const std::string& path, const ImportOptions& options) override;
  Result<> remove(const std::string& reference, const std::function<bool(const Image&)>& in_use) override;

  Result<std::unique_ptr<LayerDraft>> begin_snapshot() override;
  Result<Image> commit_snapshot(const LayerDraft& draft, const std::string& id, const Image& base, std::uint64_t bytes) override;
  Result<Image> snapshot(const std::string& id) const override;
  Result<std::vector<std::string>> snapshots() const override;
  Result<> remove_snapshot(const std::string& id) override;

  // file_store_pull.cc
  Result<Image> pull(const std::string& reference, const PullOptions& options) override;
  Result<> check_pullable(const std::string& reference) const override;
  void set_registries(Registries registries) override;

  // file_store_use.cc
  void note_use(const Image& image) override;
  Hold hold(const Image& image) override;
  std::vector<StoredImage> by_last_use() const override;
  std::uint64_t stored_bytes() const override;
  void set_in_use(InUse in_use) override { in_use_ = std::move(in_use); }

 private:
  FileStore(StoreOptions options) : options_(std::move(options)) {}

  Result<> prepare(const std::string& root);
  Result<Fd> lock() const;
  Result<> publish_host();
  Result<Image> read_record(const std::string& name) const;
  Result<Image> find_digest(const std::string& digest) const;
  struct Records {
    std::vector<Image> images;
    bool complete = true;  // false: one could not be read, so nobody knows which layers it needs
  };
  Result<Records> read_records() const;
  Result<Records> read_records_in(int dir) const;

  Result<bool> layer_exists(const std::string& layer) const;
  Result<std::uint64_t> layer_size(const std::string& layer) const;
  Result<> flush_new_layers(const WorkDir& work, std::vector<std::string>& made) const;
  // The rest want the lock held.
  // Preconditions: the layers are on disk.
  Result<> move_layers(const WorkDir& work, const std::vector<std::string>& made);
  Result<> commit(const WorkDir& work, const BuiltImage& built);
  Result<> write_record(const Image& image);
  Result<> keep_replaced(const Image& by);
  Result<> drop_bare_record(const Image& named);
  Result<> collect_layers();

  Registries registries() const;
  Result<> check_unheld(const Image& image) const;
  Result<Image> pull_once(const std::string& reference, const std::string& name, const PullOptions& options);

  StoreOptions options_;
  Fd root_;
  Fd layers_;
  Fd images_;
  Fd snapshots_;
  Fd tmp_;
  Fd downloads_;
  Image host_;
  InUse in_use_;
  mutable std::mutex mutex_;  // over registries_
  Registries registries_;
};

}  // namespace osb::image
