// Spares: sandboxes made ahead of time, one shelf for each shape (image, policy, limits) that is asked for again and again,
// and one for each named pool.
//
// A shelf grows when a create finds it empty and shrinks while nobody asks; all together are bounded by number and by
// memory. Making and taking apart happen off the request path, a few at a time. What a create takes is gone from here for
// good: nothing that ran anything comes back, and an empty shelf only means the slower way.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "async/task_group.h"
#include "image/image.h"
#include "model/pool.h"
#include "runtime/runtime.h"

namespace osb::lifecycle {

std::uint64_t available_memory();  // MemAvailable of the host, in bytes; 0 = unknown

struct SpareOptions {
  bool automatic = true;                               // by demand; named pools are there either way
  std::size_t most = 64;                               // on all shelves
  std::size_t most_of_one = 32;                        // on one that follows demand
  std::size_t first_batch = 2;                         // after the first create of a shape
  std::size_t at_once = 2;                             // made or taken apart at the same time
  std::size_t crowd = 1;                               // so many creates under way need the processors themselves
  std::int64_t idle_seconds = 60;                      // a shelf that nobody asked for this long halves
  std::int64_t age_seconds = 1800;                     // older ones are replaced
  std::optional<std::uint64_t> max_memory_bytes = {};  // what all may take; nullopt = an eighth of what is available
  std::uint64_t (*memory)() = available_memory;
};

// What a spare is made for; `image` is what the image store resolves.
struct Shape {
  std::string pool = {};  // only for creates that name it; "" = for all
  std::string image = {};
  std::string image_digest = {};
  Policy policy = {};
  Limits limits = {};
  auto operator<=>(const Shape&) const = default;
};

// How many of one shape to keep, from how it is asked for. A plain value: the caller brings the time.
class Demand {
 public:
  explicit Demand(const SpareOptions& options) : options_(options) {}
  void asked(bool hit, std::int64_t now_nanos);
  void passed(std::int64_t now_nanos);  // halves what nobody asks for
  void bound(std::size_t most) { options_.most_of_one = most; }
  std::size_t wanted() const { return wanted_; }

 private:
  SpareOptions options_;
  std::size_t wanted_ = 0;
  std::int64_t quiet_since_ = 0;
};

// How many spares a named pool keeps while `allocated` of its sandboxes live.
std::size_t wanted_of(const PoolCapacity& capacity, std::size_t demand, std::size_t allocated);

class Spares {
 public:
  struct Count {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t made = 0;
    std::uint64_t lost = 0;     // ended by themselves, or could not be claimed
    std::uint64_t expired = 0;  // too old
    auto operator<=>(const Count&) const = default;
  };
  struct Facts {  // of one shelf
    Shape shape;
    Count count;
    std::size_t ready = 0;
    std::size_t making = 0;
    std::size_t wanted = 0;
  };
  // Asked before spares are made: creates under way, and living sandboxes of a pool.
  struct Surroundings {
    std::function<std::size_t()> creates;
    std::function<std::size_t(const std::string&)> allocated;
  };
  // Told when a spare is ready and when a create takes it, for whoever keeps something ready for it; its end is told by the runtime.
  struct Watch {
    std::function<void(const SandboxId&)> ready;
    std::function<void(const SandboxId&)> taken;
  };

  // The runtime outlives the spares; co_await stop() before the end.
  Spares(asio::io_context& io, runtime::Runtime& runtime, SpareOptions options, Surroundings around);
  ~Spares();

  // `hold` keeps the image where it is for as long as the shelf is there.
  std::optional<SandboxId> take(const Shape& shape, const std::shared_ptr<void>& hold);
  void lost(const Shape& shape);  // what was taken could not be claimed
  // A spare that ended by itself is no longer one; false when the id is not a spare's.
  bool ended(const SandboxId& id);

  void watch(Watch watch) { watch_ = std::move(watch); }
  bool holds(const SandboxId& id) const { return where_.contains(id.text()); }

  // The shelf of a pool, from now on of this shape and size; another shape's goes.
  void keep(const Shape& shape, const PoolCapacity& capacity, std::shared_ptr<void> hold);
  void forget(const std::string& pool);
  void empty(const std::string& pool);  // what is there goes, and is made again
  void look_again();                    // something changed that bounds a pool
  std::size_t drain_automatic();        // what follows demand goes; how many those were

  // Takes apart what follows demand and bounds the rest anew: configuration or policy changed.
  void set_options(SpareOptions options);
  // No spare stands on these images when it is done.
  Task<void> leave(std::vector<image::Image> images);
  // Shelves whose image is another one by now go.
  void leave_stale(const image::Store& images);

  Count count() const { return total_count_; }
  std::vector<Facts> facts() const;
  std::optional<Facts> facts_of(const std::string& pool) const;
  bool supported() const { return runtime_.capabilities().spares; }
  const SpareOptions& options() const { return options_; }
  Task<void> stop();

 private:
  struct Spare {
    SandboxId id;
    std::int64_t made_at = 0;
  };
  struct Shelf;
  using ShelfPtr = std::shared_ptr<Shelf>;

  void tend();  // wakes the coroutine below, or starts it
  Task<void> tend_shelves();
  std::int64_t start_what_is_due(std::int64_t now);  // answers when to look again
  ShelfPtr neediest(std::int64_t now);
  std::size_t wanted(const Shelf& shelf) const;
  // A spare costs what a create costs and a claim besides: made while creates fill the processors it only delays them.
  bool crowded() const { return around_.creates() >= options_.crowd; }
  std::size_t room() const;
  void make_room();
  void look_over(std::int64_t now);
  void close(const ShelfPtr& shelf);
  void to_surplus(Shelf& shelf, bool oldest);
  void start_make(const ShelfPtr& shelf);
  Task<void> make(ShelfPtr shelf);
  Task<void> destroy(SandboxId id);
  std::size_t total() const;

  runtime::Runtime& runtime_;
  SpareOptions options_;
  Surroundings around_;
  Watch watch_;
  std::map<Shape, ShelfPtr> shelves_;
  std::map<std::string, ShelfPtr, std::less<>> where_;  // id -> the shelf it waits on
  std::deque<SandboxId> surplus_;
  Count total_count_;
  std::size_t working_ = 0;     // makes and destroys under way
  std::int64_t calm_from_ = 0;  // boot time: give way to what follows a create until then
  std::uint64_t memory_ = 0;    // available, as of then
  std::int64_t memory_read_at_ = -1'000'000'000'000;
  bool tending_ = false;
  bool poked_ = false;
  bool stopping_ = false;
  Timer rest_;  // between two looks at the shelves; cut short when something changed
  Timer done_;  // cancelled whenever a make or destroy ends
  TaskGroup tasks_;
};

}  // namespace osb::lifecycle
