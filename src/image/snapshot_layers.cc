// Snapshots in the store on disk. The launcher wrote the layer; here it gets its name and its record.
#include <fcntl.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/text.h"
#include "image/file_store.h"
#include "image/record.h"
#include "image/work_dir.h"
#include "model/launch_wire.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"

namespace osb::image {
namespace {

namespace fs = sys::fs;

constexpr std::size_t kMaxSnapshots = 100'000;
constexpr std::string_view kSuffix = ".json";

class Draft final : public LayerDraft {
 public:
  explicit Draft(WorkDir work) : work_(std::move(work)) {}
  int dir() const override { return work_.dir(); }
  const std::string& name() const override { return work_.name(); }

 private:
  WorkDir work_;
};

Error unknown(const std::string& id) {
  return Error(Errc::not_found, cat("the image store has no snapshot ", json_string(id.substr(0, 40))));
}

}  // namespace

Result<std::unique_ptr<LayerDraft>> FileStore::begin_snapshot() {
  TRY(auto held, lock());
  CHECK_OK(sweep_work_dirs(tmp_.get()));  // what a helper left that was killed after its server
  TRY(auto work, WorkDir::make(tmp_.get()));
  return std::unique_ptr<LayerDraft>(std::make_unique<Draft>(std::move(work)));
}

Result<Image> FileStore::commit_snapshot(const LayerDraft& draft, const std::string& id, const Image& base, std::uint64_t bytes) {
  if (!is_id_text(id)) return unknown(id);
  if (base.layers.size() >= wire::kMaxLayers)
    return Error(Errc::too_large, cat("a snapshot on top of ", base.layers.size(), " layers is one too many"))
        .with_hint("make the snapshot from a sandbox that stands on fewer snapshots");
  // Named by chance and not by content: nobody else can have the same, and nothing has to be read again.
  std::string layer = random_hex(32);
  Image image = base;  // name and digest stay those of the image at the bottom
  image.layers.insert(image.layers.begin(), layer);
  image.snapshot_layers = base.snapshot_layers + 1;
  image.size_bytes = bytes;
  image.created_at = format_rfc3339(wall_now());
  if (options_.durable == fs::Durable::yes) CHECK_OK(fs::flush_file_system(draft.dir()));
  TRY(auto held, lock());
  for (const std::string& below : base.layers) {
    TRY(bool there, layer_exists(below));
    if (!there) return Error(Errc::conflict, cat("layer ", below, " of the image is gone"));
  }
  CHECK_OK(fs::rename_new_at(draft.dir(), "layer", layers_.get(), layer));
  auto kept = fs::replace_file(snapshots_.get(), cat(id, kSuffix), to_record(image), 0600, options_.durable);
  if (!kept) {
    if (auto collected = collect_layers(); !collected) return std::move(collected).error();
    return std::move(kept).error();
  }
  return image;
}

Result<Image> FileStore::snapshot(const std::string& id) const {
  if (!is_id_text(id)) return unknown(id);
  auto file = fs::open_beneath(snapshots_.get(), cat(id, kSuffix), O_RDONLY);
  if (!file && file.error().sys() == ENOENT) return unknown(id);
  if (!file) return std::move(file).error();
  TRY(auto text, fs::read_to_end(file->get(), kMaxRecord));
  auto image = from_record(text);
  if (!image) return std::move(image).error().in(cat("snapshot ", id));
  return image;
}

Result<std::vector<std::string>> FileStore::snapshots() const {
  TRY(auto files, fs::list_dir(snapshots_.get(), kMaxSnapshots));
  std::vector<std::string> ids;
  for (const std::string& file : files) {
    if (!file.ends_with(kSuffix)) continue;
    std::string id = file.substr(0, file.size() - kSuffix.size());
    if (is_id_text(id)) ids.push_back(std::move(id));
  }
  return ids;
}

Result<> FileStore::remove_snapshot(const std::string& id) {
  if (!is_id_text(id)) return unknown(id);
  TRY(auto held, lock());
  auto removed = fs::unlink_at(snapshots_.get(), cat(id, kSuffix));
  if (!removed && removed.error().sys() != ENOENT) return removed;
  return collect_layers();
}

}  // namespace osb::image
