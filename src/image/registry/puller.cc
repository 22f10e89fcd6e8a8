#include "image/registry/puller.h"

#include <fcntl.h>

#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"

namespace osb::image::registry {
namespace {

namespace fs = sys::fs;

constexpr std::size_t kAtOnce = 3;
constexpr std::int64_t kTellEveryNanos = 100'000'000;

Result<> put(int dir, const std::string& name, std::string_view content) {
  return fs::replace_file(dir, name, content, 0600, fs::Durable::no);
}

Result<Fd> make_blobs(int layout) {
  CHECK_OK(fs::make_dir_at(layout, "blobs", 0700));
  TRY(auto blobs, fs::open_beneath(layout, "blobs", O_RDONLY | O_DIRECTORY));
  CHECK_OK(fs::make_dir_at(blobs.get(), "sha256", 0700));
  return fs::open_beneath(blobs.get(), "sha256", O_RDONLY | O_DIRECTORY);
}

Result<> write_documents(int layout, int blobs, const Documents& documents) {
  CHECK_OK(put(layout, "oci-layout", R"({"imageLayoutVersion":"1.0.0"})"));
  CHECK_OK(put(layout, "index.json",
               cat(R"({"schemaVersion":2,"manifests":[{"mediaType":")", documents.media_type, R"(","digest":"sha256:)",
                   documents.manifest_hex, R"(","size":)", documents.manifest_text.size(), "}]}")));
  CHECK_OK(put(blobs, documents.manifest_hex, documents.manifest_text));
  return put(blobs, documents.manifest.config.hex, documents.config_text);
}

Result<> check_sizes(const Documents& documents, std::uint64_t max_bytes) {
  std::uint64_t total = 0;
  for (const Descriptor& layer : documents.manifest.layers) {
    if (layer.size == 0) return Error(Errc::invalid_argument, cat("layer ", layer.hex, " has no size"));
    if (layer.size > max_bytes - total)
      return Error(Errc::too_large, cat("the layers of the image have more than ", max_bytes, " bytes"))
          .with_code("SANDBOX::IMAGE_PULL_FAILED");
    total += layer.size;
  }
  return Ok{};
}

// Which layers to download: those whose directory is not here, each blob once.
Result<std::vector<std::size_t>> missing_layers(const Documents& documents, const PullPlace& place, Progress& progress) {
  std::vector<std::size_t> missing;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < documents.diff_ids.size(); ++i) {
    TRY(bool exists, place.layer_exists(documents.diff_ids[i]));
    if (exists) progress.set(i, LayerProgress::State::exists);
    if (!exists && seen.insert(documents.manifest.layers[i].hex).second) missing.push_back(i);
  }
  return missing;
}

// Hands out one layer after the other; the first failure stops the others.
class Crew {
 public:
  Crew(Session& session, const Documents& documents, const PullPlace& place, int blobs, Progress& progress,
       std::vector<std::size_t> missing)
      : session_(session), documents_(documents), place_(place), blobs_(blobs), progress_(progress), missing_(std::move(missing)) {}

  Result<> run() {
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < std::min(kAtOnce, missing_.size()); ++i) threads.emplace_back([this] { work(); });
    }
    if (failure_) return *std::move(failure_);
    return Ok{};
  }

 private:
  void work() {
    for (std::size_t at = next_++; at < missing_.size() && !session_.stop().stop_requested(); at = next_++) {
      std::size_t i = missing_[at];
      const Descriptor& layer = documents_.manifest.layers[i];
      progress_.set(i, LayerProgress::State::downloading);
      BlobRequest request{layer.hex, layer.size, [this, i](std::uint64_t bytes) { progress_.set_bytes(i, bytes); }};
      auto done = place_.downloads.fetch(session_, request, blobs_, session_.stop());
      if (done) {
        progress_.set(i, LayerProgress::State::downloaded);
        continue;
      }
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::move(done).error().in(cat("layer ", layer.hex.substr(0, 12)));
      session_.cancel();
    }
    std::lock_guard lock(mutex_);
    if (!failure_ && session_.stop().stop_requested())
      failure_ = Error(Errc::conflict, "the pull was cancelled").with_code("SANDBOX::IMAGE_PULL_CANCELLED");
  }

  Session& session_;
  const Documents& documents_;
  const PullPlace& place_;
  int blobs_;
  Progress& progress_;
  std::vector<std::size_t> missing_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::optional<Error> failure_;
};

}  // namespace

void Progress::begin(const Documents& documents) {
  std::lock_guard lock(mutex_);
  for (const Descriptor& layer : documents.manifest.layers) layers_.push_back({cat("sha256:", layer.hex), {}, 0, layer.size});
  diff_ids_ = documents.diff_ids;
  tell(true);
}

void Progress::set(std::size_t layer, LayerProgress::State state) {
  std::lock_guard lock(mutex_);
  layers_[layer].state = state;
  if (state != LayerProgress::State::waiting && state != LayerProgress::State::downloading) layers_[layer].bytes = layers_[layer].total;
  tell(true);
}

void Progress::set_bytes(std::size_t layer, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  layers_[layer].bytes = bytes;
  tell(false);
}

void Progress::set_diff(const std::string& diff_id, LayerProgress::State state) {
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < diff_ids_.size(); ++i)
    if (diff_ids_[i] == diff_id && layers_[i].state != LayerProgress::State::exists) layers_[i].state = state;
  tell(true);
}

void Progress::tell(bool always) {
  auto now = boot_now_nanos();
  if (!sink_ || (!always && now - told_at_ < kTellEveryNanos)) return;
  told_at_ = now;
  sink_(layers_);
}

Result<Documents> fetch_layout(Session& session, const PullPlace& place, Progress& progress) {
  CHECK_OK(session.open());
  TRY(auto documents, fetch_documents(session));
  CHECK_OK(check_sizes(documents, place.max_bytes));
  progress.begin(documents);
  TRY(auto blobs, make_blobs(place.layout));
  CHECK_OK(write_documents(place.layout, blobs.get(), documents));
  TRY(auto missing, missing_layers(documents, place, progress));
  Crew crew(session, documents, place, blobs.get(), progress, std::move(missing));
  CHECK_OK(crew.run());
  return documents;
}

}  // namespace osb::image::registry
