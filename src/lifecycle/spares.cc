#include "lifecycle/spares.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/host_room.h"

namespace osb::lifecycle {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMillisecond;
// A create is usually followed by a command at once; a shelf that is not low leaves both cores to it.
constexpr std::int64_t kAfterACreate = 3 * kMillisecond;
constexpr std::int64_t kLookAgain = 10 * kSecond;
constexpr std::int64_t kLongestRetry = 60 * kSecond;
constexpr std::uint64_t kSpareBytes = 1 << 20;  // what the kernel charges for one, execd's own pages, and a little more
constexpr std::uint64_t kShareOfMemory = 8;
constexpr auto kStopPatience = 10s;
constexpr auto kDestroyAgain = std::chrono::seconds(1);

}  // namespace

void Demand::asked(bool hit, std::int64_t now_nanos) {
  quiet_since_ = now_nanos;
  if (hit) return;
  wanted_ = std::min(std::max(options_.first_batch, wanted_ * 2), options_.most_of_one);
}

void Demand::passed(std::int64_t now_nanos) {
  if (now_nanos - quiet_since_ < options_.idle_seconds * kSecond) return;
  quiet_since_ = now_nanos;
  wanted_ /= 2;
}

std::size_t wanted_of(const PoolCapacity& capacity, std::size_t demand, std::size_t allocated) {
  std::size_t least = capacity.pool_min > allocated ? capacity.pool_min - allocated : 0;
  least = std::max<std::size_t>(least, capacity.buffer_min);
  std::size_t most = capacity.pool_max > allocated ? capacity.pool_max - allocated : 0;
  return std::min({std::max(demand, least), std::max<std::size_t>(capacity.buffer_max, least), most});
}

struct Spares::Shelf {
  Shelf(Shape made_for, const SpareOptions& options) : shape(std::move(made_for)), demand(options) {}
  Shape shape;
  Demand demand;
  std::optional<PoolCapacity> capacity = {};
  std::deque<Spare> ready = {};  // the oldest first
  std::size_t making = 0;
  Count count = {};
  std::shared_ptr<void> hold = {};
  bool closed = false;        // what is still being made for it goes at once
  std::int64_t retry_at = 0;  // after a failure
  std::int64_t retry_after = kSecond;
};

Spares::Spares(asio::io_context& io, runtime::Runtime& runtime, SpareOptions options, Surroundings around)
    : runtime_(runtime),
      options_(options),
      around_(std::move(around)),
      rest_(io.get_executor()),
      done_(io.get_executor(), Timer::time_point::max()),
      tasks_(io.get_executor()) {}

Spares::~Spares() = default;

std::optional<SandboxId> Spares::take(const Shape& shape, const std::shared_ptr<void>& hold) {
  bool counts = supported() && !stopping_ && (options_.automatic || !shape.pool.empty()) && options_.most > 0;
  if (!counts) return std::nullopt;
  auto found = shelves_.find(shape);
  if (found == shelves_.end() && shape.pool.empty()) {
    found = shelves_.emplace(shape, std::make_shared<Shelf>(shape, options_)).first;
    found->second->hold = hold;
  }
  std::optional<SandboxId> taken;
  if (found != shelves_.end() && !found->second->ready.empty()) {
    taken = std::move(found->second->ready.front().id);
    found->second->ready.pop_front();
    where_.erase(taken->text());
    if (watch_.taken) watch_.taken(*taken);
  }
  ++(taken ? total_count_.hits : total_count_.misses);
  if (found == shelves_.end()) return std::nullopt;
  auto now = boot_now_nanos();
  ++(taken ? found->second->count.hits : found->second->count.misses);
  found->second->demand.asked(taken.has_value(), now);
  calm_from_ = now + kAfterACreate;
  tend();
  return taken;
}

void Spares::lost(const Shape& shape) {
  ++total_count_.lost;
  if (auto found = shelves_.find(shape); found != shelves_.end()) ++found->second->count.lost;
}

bool Spares::ended(const SandboxId& id) {
  auto found = where_.find(id.text());
  if (found == where_.end()) return false;
  auto shelf = found->second;
  where_.erase(found);
  std::erase_if(shelf->ready, [&](const Spare& each) { return each.id.text() == id.text(); });
  ++shelf->count.lost;
  ++total_count_.lost;
  log::warn("spare sandbox ended by itself", {{"sandbox", id.text()}});
  tend();
  return true;
}

void Spares::keep(const Shape& shape, const PoolCapacity& capacity, std::shared_ptr<void> hold) {
  std::vector<ShelfPtr> others;
  for (const auto& [each, shelf] : shelves_)
    if (each.pool == shape.pool && each != shape) others.push_back(shelf);
  for (const auto& other : others) close(other);
  auto& shelf = shelves_[shape];
  if (!shelf) shelf = std::make_shared<Shelf>(shape, options_);
  shelf->capacity = capacity;
  shelf->demand.bound(capacity.buffer_max);
  shelf->hold = std::move(hold);
  shelf->retry_at = 0;
  tend();
}

void Spares::forget(const std::string& pool) {
  std::vector<ShelfPtr> gone;
  for (const auto& [each, shelf] : shelves_)
    if (each.pool == pool) gone.push_back(shelf);
  for (const auto& shelf : gone) close(shelf);
  tend();
}

void Spares::empty(const std::string& pool) {
  for (const auto& [each, shelf] : shelves_)
    while (each.pool == pool && !shelf->ready.empty()) to_surplus(*shelf, true);
  tend();
}

void Spares::look_again() {
  if (!shelves_.empty()) tend();
}

void Spares::set_options(SpareOptions options) {
  options_ = options;
  drain_automatic();
}

std::size_t Spares::drain_automatic() {
  std::vector<ShelfPtr> automatic;
  std::size_t count = 0;
  for (const auto& [each, shelf] : shelves_)
    if (each.pool.empty()) automatic.push_back(shelf);
  for (const auto& shelf : automatic) {
    count += shelf->ready.size();
    close(shelf);
  }
  tend();
  return count;
}

void Spares::close(const ShelfPtr& shelf) {
  while (!shelf->ready.empty()) to_surplus(*shelf, true);
  shelf->closed = true;
  shelf->hold.reset();
  shelves_.erase(shelf->shape);
}

void Spares::to_surplus(Shelf& shelf, bool oldest) {
  auto& spare = oldest ? shelf.ready.front() : shelf.ready.back();
  where_.erase(spare.id.text());
  surplus_.push_back(std::move(spare.id));
  oldest ? shelf.ready.pop_front() : shelf.ready.pop_back();
}

Task<void> Spares::leave(std::vector<image::Image> images) {
  std::vector<ShelfPtr> gone;
  for (const auto& [shape, shelf] : shelves_) {
    bool stands = std::ranges::any_of(images, [&](const image::Image& image) { return image.digest == shape.image_digest; });
    if (stands) gone.push_back(shelf);
  }
  std::vector<SandboxId> ids;
  for (const auto& shelf : gone) {
    for (auto& spare : shelf->ready) {
      where_.erase(spare.id.text());
      ids.push_back(std::move(spare.id));
    }
    shelf->ready.clear();
    close(shelf);
  }
  for (auto& id : ids) {
    ++working_;
    co_await destroy(std::move(id));
  }
  auto deadline = std::chrono::steady_clock::now() + kStopPatience;
  auto busy = [&] { return std::ranges::any_of(gone, [](const ShelfPtr& shelf) { return shelf->making > 0; }); };
  while (busy() && std::chrono::steady_clock::now() < deadline) {
    done_.expires_at(deadline);
    co_await done_.async_wait(nothrow);
  }
}

void Spares::leave_stale(const image::Store& images) {
  std::vector<ShelfPtr> gone;
  for (const auto& [shape, shelf] : shelves_) {
    auto image = images.resolve(shape.image);
    if (!image || image->digest != shape.image_digest) gone.push_back(shelf);
  }
  for (const auto& shelf : gone) close(shelf);
  if (!gone.empty()) tend();
}

std::size_t Spares::total() const {
  std::size_t all = surplus_.size();
  for (const auto& [shape, shelf] : shelves_) all += shelf->ready.size() + shelf->making;
  return all;
}

std::vector<Spares::Facts> Spares::facts() const {
  std::vector<Facts> out;
  for (const auto& [shape, shelf] : shelves_) out.push_back({shape, shelf->count, shelf->ready.size(), shelf->making, wanted(*shelf)});
  return out;
}

std::optional<Spares::Facts> Spares::facts_of(const std::string& pool) const {
  for (const auto& [shape, shelf] : shelves_)
    if (shape.pool == pool) return Facts{shape, shelf->count, shelf->ready.size(), shelf->making, wanted(*shelf)};
  return std::nullopt;
}

std::size_t Spares::wanted(const Shelf& shelf) const {
  if (!shelf.capacity) return shelf.demand.wanted();
  return wanted_of(*shelf.capacity, shelf.demand.wanted(), around_.allocated(shelf.shape.pool));
}

// How many spares there may be: memory that spares take already counts as available to them.
std::size_t Spares::room() const {
  std::uint64_t taken = total() * kSpareBytes;
  auto available = memory_;
  std::uint64_t share = (available + taken) / kShareOfMemory;
  if (available == 0) share = options_.most * kSpareBytes;
  auto budget = options_.max_memory_bytes ? std::min(*options_.max_memory_bytes, share) : share;
  return std::min<std::uint64_t>(options_.most, budget / kSpareBytes);
}

// What follows demand goes before what somebody asked to be kept, the fullest shelf first.
void Spares::make_room() {
  auto most = room();
  while (total() - surplus_.size() > most) {
    Shelf* fullest = nullptr;
    auto rank = [](const Shelf& shelf) { return std::pair(!shelf.capacity.has_value(), shelf.ready.size()); };
    for (auto& [shape, shelf] : shelves_)
      if (!shelf->ready.empty() && (fullest == nullptr || rank(*shelf) > rank(*fullest))) fullest = shelf.get();
    if (fullest == nullptr) return;
    to_surplus(*fullest, true);
  }
}

void Spares::look_over(std::int64_t now) {
  std::vector<ShelfPtr> idle;
  for (auto& [shape, shelf] : shelves_) {
    shelf->demand.passed(now);
    while (!shelf->ready.empty() && now - shelf->ready.front().made_at > options_.age_seconds * kSecond) {
      ++shelf->count.expired;
      ++total_count_.expired;
      to_surplus(*shelf, true);
    }
    auto most = wanted(*shelf);
    while (shelf->ready.size() > most) to_surplus(*shelf, false);
    if (!shelf->capacity && most == 0 && shelf->making == 0) idle.push_back(shelf);
  }
  for (const auto& shelf : idle) close(shelf);
  make_room();
}

// The one that lacks most; null when none lacks any or nothing may be made now.
Spares::ShelfPtr Spares::neediest(std::int64_t now) {
  ShelfPtr best;
  std::size_t most_missing = 0;
  bool calm = now >= calm_from_;
  for (auto& [shape, shelf] : shelves_) {
    if (crowded() && !shelf->capacity) continue;
    auto goal = wanted(*shelf);
    auto here = shelf->ready.size() + shelf->making;
    if (goal <= here || goal - here <= most_missing || now < shelf->retry_at) continue;
    bool low = here * 2 < goal;
    if (!low && !calm) continue;
    most_missing = goal - here;
    best = shelf;
  }
  return best;
}

// While there are no spares and nobody wants any, nothing runs and nothing wakes up.
void Spares::tend() {
  if (stopping_) return;
  poked_ = true;
  rest_.cancel();
  if (std::exchange(tending_, true)) return;
  tasks_.spawn("spare sandboxes", tend_shelves());
}

Task<void> Spares::tend_shelves() {
  while (!stopping_) {
    poked_ = false;
    auto now = boot_now_nanos();
    auto again = start_what_is_due(now);
    if (shelves_.empty() && surplus_.empty() && working_ == 0) break;
    if (poked_) {
      co_await yield_now();
      continue;
    }
    rest_.expires_after(std::chrono::nanoseconds(std::max<std::int64_t>(again - now, kMillisecond)));
    co_await rest_.async_wait(nothrow);
  }
  tending_ = false;
}

std::int64_t Spares::start_what_is_due(std::int64_t now) {
  if (now - memory_read_at_ > kSecond) {
    memory_ = options_.memory();
    memory_read_at_ = now;
  }
  look_over(now);
  auto at_once = around_.creates() > 0 ? std::size_t{1} : options_.at_once;  // requests come first
  auto room_left = room();
  while (working_ < at_once) {
    auto shelf = total() < room_left ? neediest(now) : nullptr;
    if (shelf) {
      start_make(shelf);
    } else if (!surplus_.empty()) {
      auto id = std::move(surplus_.front());
      surplus_.pop_front();
      ++working_;
      tasks_.spawn("end spare sandbox", destroy(std::move(id)));
    } else {
      break;
    }
  }
  if (crowded() && now >= calm_from_) calm_from_ = now + kAfterACreate;
  bool waits_for_calm = now < calm_from_;
  auto again = waits_for_calm ? calm_from_ : now + kLookAgain;
  for (const auto& [shape, shelf] : shelves_)
    if (shelf->retry_at > now) again = std::min(again, shelf->retry_at);
  return again;
}

void Spares::start_make(const ShelfPtr& shelf) {
  ++working_;
  ++shelf->making;
  tasks_.spawn("make spare sandbox", make(shelf));
}

Task<void> Spares::make(ShelfPtr shelf) {
  auto id = SandboxId::random();
  SandboxSpec spec;
  spec.image = shelf->shape.image;
  spec.image_digest = shelf->shape.image_digest;
  spec.policy = shelf->shape.policy;
  spec.limits = shelf->shape.limits;
  auto made = co_await runtime_.prepare(id, std::move(spec));
  --working_;
  --shelf->making;
  auto now = boot_now_nanos();
  if (!made) {
    // The create that comes next meets the same trouble and reports it; making more now would only add to it.
    log::warn("cannot make a spare sandbox", {{"error", made.error().what()}});
    shelf->retry_at = now + shelf->retry_after;
    shelf->retry_after = std::min(shelf->retry_after * 2, kLongestRetry);
    if (!shelf->capacity) shelf->demand = Demand(options_);
  } else {
    ++shelf->count.made;
    ++total_count_.made;
    shelf->retry_after = kSecond;
    if (shelf->closed || stopping_) {
      surplus_.push_back(std::move(id));
    } else {
      where_.emplace(id.text(), shelf);
      shelf->ready.push_back({id, now});
      if (watch_.ready) watch_.ready(id);
    }
  }
  done_.cancel();
  tend();
}

Task<void> Spares::destroy(SandboxId id) {
  auto gone = co_await runtime_.destroy(id);
  if (!gone && gone.error().kind() != Errc::not_found && !stopping_) {
    log::warn("spare sandbox not destroyed, will try again", {{"sandbox", id.text()}, {"error", gone.error().what()}});
    co_await sleep_for(kDestroyAgain);
    surplus_.push_back(std::move(id));
  }
  --working_;
  done_.cancel();
  tend();
}

// What is being made is waited for: cut off, it would be made all the same, and nobody would know its name.
Task<void> Spares::stop() {
  stopping_ = true;
  rest_.cancel();
  [[maybe_unused]] bool idle = co_await tasks_.wait_idle(kStopPatience);
  co_await tasks_.stop();
  std::vector<ShelfPtr> all;
  for (const auto& [shape, shelf] : shelves_) all.push_back(shelf);
  for (const auto& shelf : all) close(shelf);
  while (!surplus_.empty()) {
    auto id = std::move(surplus_.front());
    surplus_.pop_front();
    ++working_;
    co_await destroy(std::move(id));
  }
}

std::uint64_t available_memory() {
  auto bytes = runtime::read_memory().memory_available_bytes;
  return bytes == runtime::HostRoom::kUnknown ? 0 : bytes;
}

}  // namespace osb::lifecycle
