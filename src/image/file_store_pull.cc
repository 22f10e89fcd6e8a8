// The store's side of a pull: where it works, what it may cost, how it becomes an image.
#include <fcntl.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "image/file_store.h"
#include "image/reference.h"
#include "image/registry/access.h"
#include "image/registry/puller.h"
#include "sys/fs_open.h"

namespace osb::image {
namespace {

namespace fs = sys::fs;

// Removed between the look and the commit: by another process, or by a clean-up. The next round downloads it.
bool lost_a_layer(const Error& error) { return error.kind() == Errc::conflict && error.code().empty(); }

Error coded(Error error) { return error.code().empty() ? std::move(error).with_code("SANDBOX::IMAGE_PULL_FAILED") : std::move(error); }

}  // namespace

std::string_view name_of(LayerProgress::State state) {
  switch (state) {
    case LayerProgress::State::waiting: return "waiting";
    case LayerProgress::State::downloading: return "downloading";
    case LayerProgress::State::downloaded: return "downloaded";
    case LayerProgress::State::unpacking: return "unpacking";
    case LayerProgress::State::done: return "done";
    case LayerProgress::State::exists: return "exists";
  }
  return "waiting";
}

void FileStore::set_registries(Registries registries) {
  std::lock_guard lock(mutex_);
  registries_ = std::move(registries);
}

Registries FileStore::registries() const {
  std::lock_guard lock(mutex_);
  return registries_;
}

Result<> FileStore::check_pullable(const std::string& reference) const {
  CHECK_OK(check_may_add());
  TRY([[maybe_unused]] auto name, registry::remote_name(reference, registries().default_registry));
  return Ok{};
}

Result<Image> FileStore::pull(const std::string& reference, const PullOptions& options) {
  CHECK_OK(check_may_add());
  TRY(auto name, new_name(reference));
  auto pulled = pull_once(reference, name, options);
  if (!pulled && lost_a_layer(pulled.error())) pulled = pull_once(reference, name, options);
  if (auto trimmed = registry::Downloads(downloads_.get()).trim(registry::kMaxKeptDownloads); !trimmed)
    log::warn("downloads not trimmed", {{"error", trimmed.error().what()}});
  if (!pulled) return coded(std::move(pulled).error()).in(cat("pull ", name));
  return pulled;
}

Result<Image> FileStore::pull_once(const std::string& reference, const std::string& name, const PullOptions& options) {
  Registries registries = this->registries();
  TRY(auto remote, registry::remote_name(reference, registries.default_registry));
  RegistryAuth auth = options.auth.empty() ? registry::login_for(registries, remote.registry) : options.auth;
  TRY(auto trust, registry::Trust::load(registries.ca_file));
  registry::Session session(remote, std::move(auth), std::move(registries), std::move(trust), options.stop);

  TRY(auto held, lock());
  TRY(auto work, WorkDir::make(tmp_.get()));
  held.reset();
  TRY(auto layout, work.make_dir("layout"));
  registry::Downloads downloads(downloads_.get());
  registry::Progress progress(options.progress);
  auto exists = [this](const std::string& layer) { return layer_exists(layer); };
  registry::PullPlace place{layout.get(), downloads, exists, options_.limits.max_bytes};
  TRY(auto documents, registry::fetch_layout(session, place, progress));

  Budget budget(options_.limits, root_.get());
  ImportContext context{.work = work,
                        .budget = budget,
                        .wanted = name,
                        .layer_exists = exists,
                        .layer_size = [this](const std::string& layer) { return layer_size(layer); },
                        .existing_need_no_blob = true};
  context.on_layer = [&](const std::string& layer, bool done) {
    progress.set_diff(layer, done ? LayerProgress::State::done : LayerProgress::State::unpacking);
  };
  TRY(auto built, import_layout(std::move(layout), context));
  if (options.stop.stop_requested()) return Error(Errc::conflict, "the pull was cancelled").with_code("SANDBOX::IMAGE_PULL_CANCELLED");
  built.image.created_at = format_rfc3339(wall_now());
  CHECK_OK(flush_new_layers(work, built.made));
  TRY(held, lock());
  CHECK_OK(commit(work, built));
  for (const Descriptor& layer : documents.manifest.layers) downloads.forget(layer.hex);
  return std::move(built.image);
}

}  // namespace osb::image
