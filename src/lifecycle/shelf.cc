// Which images stay: removal on request, pruning, and the bound on what they may take. Trees are removed off the loop.
#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "image/reference.h"
#include "lifecycle/off_loop.h"
#include "lifecycle/service.h"
#include "lifecycle/shield.h"

namespace osb::lifecycle {

// While an image is on its way out no sandbox is made from it. Ends also when its coroutine is cut off.
class Service::Doomed {
 public:
  Doomed(std::set<std::string>& doomed, std::vector<std::string> names) : doomed_(doomed), names_(std::move(names)) {
    for (const auto& name : names_) doomed_.insert(name);
  }
  ~Doomed() {
    for (const auto& name : names_) doomed_.erase(name);
  }
  Doomed(const Doomed&) = delete;
  Doomed& operator=(const Doomed&) = delete;

 private:
  std::set<std::string>& doomed_;
  std::vector<std::string> names_;
};

bool Service::image_in_use(const image::Image& image) const { return image_in_use(image.digest) || image_in_use(image.name); }

// One descriptor an image, however many sandboxes run on it. The built-in one cannot be removed, and the layers below a
// snapshot stay for the snapshot's sake.
image::Store::Hold Service::hold_image(const image::Image& image) {
  if (image.host_view || image.snapshot_layers > 0) return {};
  auto& known = holds_[image.digest];
  auto held = known.lock();
  if (!held) known = held = images_.hold(image);
  return held;
}

Task<Result<>> Service::remove_image(std::string reference, Caller caller) {
  auto work = remove_image_shielded(std::move(reference), std::move(caller));
  co_return co_await shield(tasks_, "remove image", std::move(work));
}

Task<Result<>> Service::remove_image_shielded(std::string reference, Caller caller) {
  CO_TRY(auto image, images_.resolve(reference));
  if (doomed_.contains(image.name)) co_return Error(Errc::conflict, cat("image ", image.name, " is being removed already"));
  if (image_in_use(image))
    co_return Error(Errc::conflict, cat("a sandbox runs on image ", image.name)).with_hint("delete the sandbox first");
  if (auto recorded = record(caller, "image.remove", image.name, {{"digest", image.digest}}); !recorded) co_return recorded;
  Doomed doomed(doomed_, {image.name});
  std::vector<image::Image> leaving{image};
  co_await spares_.leave(std::move(leaving));
  auto remove = [&images = images_, name = image.name] { return images.remove(name, {}); };
  auto removed = co_await off_loop(pulls_.workers(), std::move(remove));
  if (!removed) note_failure(caller, "image.remove", image.name, removed.error());
  co_return removed;
}

Task<Result<Pruned>> Service::prune_images(bool all, Caller caller) {
  auto work = prune_shielded(all, std::move(caller));
  co_return co_await shield(tasks_, "prune images", std::move(work));
}

Task<Result<Pruned>> Service::prune_shielded(bool all, Caller caller) {
  auto look = [&images = images_] { return images.by_last_use(); };
  auto stored = co_await off_loop(pulls_.workers(), look);
  std::vector<image::Image> victims;
  for (auto& one : stored)
    if ((one.bare || all) && is_removable(one.image)) victims.push_back(std::move(one.image));
  Pruned pruned;
  for (const auto& image : victims) pruned.names.push_back(image.name);
  std::string names;
  for (const auto& name : pruned.names) names += cat(names.empty() ? "" : " ", name);
  if (auto recorded = record(caller, "image.prune", "", {{"images", names.substr(0, 2000)}}); !recorded)
    co_return std::move(recorded).error();
  auto freed = co_await remove_all(std::move(victims));
  pruned.freed_bytes = freed;
  co_return pruned;
}

bool Service::is_removable(const image::Image& image) const { return !doomed_.contains(image.name) && !image_in_use(image); }

// Answers how many bytes are free now that were not before.
Task<std::uint64_t> Service::remove_all(std::vector<image::Image> victims) {
  std::vector<std::string> names;
  for (const auto& image : victims) names.push_back(image.name);
  Doomed doomed(doomed_, names);
  co_await spares_.leave(std::move(victims));
  auto work = [&images = images_, names]() -> std::uint64_t {
    auto before = images.stored_bytes();
    for (const auto& name : names) {
      auto removed = images.remove(name, {});
      if (!removed) log::warn("image not removed", {{"image", name}, {"error", removed.error().what()}});
    }
    auto after = images.stored_bytes();
    return before > after ? before - after : 0;
  };
  auto freed = co_await off_loop(pulls_.workers(), std::move(work));
  co_return freed;
}

// The least recently used go until the rest fits. One at a time: layers are shared, so only the store knows what each
// one's going frees.
Task<void> Service::collect_images() {
  if (!options_.max_image_bytes || collecting_) co_return;
  collecting_ = true;
  auto look = [&images = images_, limit = *options_.max_image_bytes] {
    return images.stored_bytes() > limit ? images.by_last_use() : std::vector<image::StoredImage>();
  };
  while (options_.max_image_bytes) {
    auto stored = co_await off_loop(pulls_.workers(), look);
    auto victim = std::find_if(stored.begin(), stored.end(), [this](const auto& one) { return is_removable(one.image); });
    if (victim == stored.end()) break;
    note("image.collect", victim->image.name, {{"digest", victim->image.digest}});
    std::vector<image::Image> one{victim->image};
    [[maybe_unused]] auto freed = co_await remove_all(std::move(one));
    auto still = images_.resolve(victim->image.name);
    if (still) break;  // it could not be removed; trying for ever would not help
  }
  collecting_ = false;
}

void Service::image_added() {
  spares_.leave_stale(images_);
  pools_->refresh();
  tasks_.spawn("collect images", collect_images());
}

}  // namespace osb::lifecycle
