// Spares: sandboxes made ahead of time, one pool for each shape (image, policy, limits) that is asked for again and again.
//
// A shape's pool grows when a create finds it empty and shrinks while nobody asks; all pools together are bounded. Making
// and taking apart happen off the request path. What a create takes is gone from here for good: nothing that ran anything
// comes back, and an empty pool only means the slower way.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "async/task.h"
#include "async/task_group.h"
#include "runtime/runtime.h"

namespace osb::lifecycle {

struct SpareOptions {
  std::size_t most = 64;           // over all shapes; 0 switches spares off
  std::size_t most_of_one = 32;    // of one shape
  std::size_t first_batch = 2;     // after the first create of a shape
  std::int64_t idle_seconds = 60;  // a pool that nobody asked for this long halves
};

// What a spare is made for; `image` is what the image store resolves.
struct Shape {
  std::string image;
  std::string image_digest;
  Policy policy;
  Limits limits;
  auto operator<=>(const Shape&) const = default;
};

// How many of one shape to keep, from how it is asked for. A plain value: the caller brings the time.
class Demand {
 public:
  explicit Demand(const SpareOptions& options) : options_(options) {}
  void asked(bool hit, std::int64_t now_nanos);
  void passed(std::int64_t now_nanos);  // halves what nobody asks for
  std::size_t wanted() const { return wanted_; }

 private:
  SpareOptions options_;
  std::size_t wanted_ = 0;
  std::int64_t quiet_since_ = 0;
};

class Spares {
 public:
  struct Count {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::size_t ready = 0;
  };

  // The runtime outlives the spares; co_await stop() before the end.
  Spares(asio::io_context& io, runtime::Runtime& runtime, SpareOptions options);

  std::optional<SandboxId> take(const Shape& shape);
  // A spare that ended by itself is no longer one; false when the id is not a spare's.
  bool ended(const SandboxId& id);
  // Images or policy changed: what was made from the old ones is taken apart.
  void drain();
  bool uses_image(const std::string& digest_or_name) const;
  Count count() const;
  Task<void> stop();

 private:
  struct Pool {
    explicit Pool(const SpareOptions& options) : demand(options) {}
    Demand demand;
    std::deque<SandboxId> ready;
    std::size_t making = 0;
  };
  struct Order {  // one spare to make
    Shape shape;
    SandboxId id;
  };

  void tend();  // wakes the coroutine below, or starts it
  Task<void> tend_pools();
  Task<void> do_what_is_due();
  std::optional<Order> next_order();
  Task<void> make(Order order);
  Task<void> destroy(SandboxId id);
  void shrink(std::int64_t now);
  std::size_t total() const;

  runtime::Runtime& runtime_;
  SpareOptions options_;
  std::map<Shape, Pool> pools_;
  std::map<std::string, std::deque<SandboxId>*, std::less<>> where_;  // id -> the queue it waits in
  std::deque<SandboxId> surplus_;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  bool tending_ = false;
  bool stopping_ = false;
  Timer rest_;  // between two looks at the pools; cut short when somebody asks
  TaskGroup tasks_;
};

}  // namespace osb::lifecycle
