// Snapshots of sandboxes: accepted at once, taken one after the other, kept until they are deleted.
//
// The row in the store says what state a snapshot is in; the image store has its layer exactly when it can be used. start()
// brings the two together: Creating with a layer is Ready, Creating without one has Failed, Deleting is finished, and a layer
// that no row speaks of goes.
#pragma once
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "async/task.h"
#include "async/task_group.h"
#include "audit/audit.h"
#include "base/result.h"
#include "image/image.h"
#include "model/caller.h"
#include "model/sandbox.h"
#include "model/snapshot.h"
#include "runtime/runtime.h"
#include "store/store.h"

namespace osb::lifecycle {

class Service;

struct SnapshotFilter {
  std::string sandbox;                // "" = any
  std::string name;                   // "" = any
  std::vector<SnapshotState> states;  // any of; empty = all
};

struct SnapshotListing {
  std::vector<Snapshot> items;  // this page, newest first
  std::size_t total = 0;
};

// A sandbox to take a snapshot of, and what it stands on.
struct SnapshotSource {
  Sandbox sandbox;
  std::string image_name;
  std::string image_digest;
};

class Snapshots {
 public:
  static constexpr std::size_t kMaxSnapshots = 10'000;
  static constexpr std::size_t kMaxWaiting = 100;
  static constexpr std::size_t kMaxChain = 32;  // snapshots on top of one another
  static constexpr std::size_t kMaxNameBytes = 256;

  Snapshots(asio::io_context& io, Service& service, store::Store& store, audit::Log& audit, image::Store& images,
            runtime::Runtime& runtime);

  Task<Result<>> start();
  Task<void> stop();

  Result<Snapshot> create(const SandboxId& sandbox, std::string name, const Caller& caller);  // Creating; the rest follows
  Result<Snapshot> get(const std::string& id, const Caller& caller) const;
  SnapshotListing list(const SnapshotFilter& filter, std::size_t page, std::size_t page_size, const Caller& caller) const;
  Result<> remove(const std::string& id, const Caller& caller);  // Deleting; gone soon

  // What a new sandbox from this snapshot stands on.
  Result<image::Image> restorable(const std::string& id, const Caller& caller) const;
  bool needs_image(const std::string& digest_or_name) const;

 private:
  Result<> check_source(const Sandbox& sandbox) const;
  Result<image::Image> base_of(const SnapshotSource& source) const;
  const Snapshot* find(const std::string& id, const Caller& caller) const;
  void move_to(Snapshot& snapshot, SnapshotState to, std::string_view reason, std::string message);
  void save(const Snapshot& snapshot);
  void note(std::string action, const Snapshot& snapshot, std::string outcome);
  Task<void> run_queue();
  Task<void> take(std::string id);
  Task<Result<runtime::SnapshotFacts>> capture(std::string id, SandboxId sandbox, image::Image base);
  Task<void> erase(std::string id);

  Service& service_;
  store::Store& store_;
  audit::Log& audit_;
  image::Store& images_;
  runtime::Runtime& runtime_;
  std::map<std::string, Snapshot, std::less<>> rows_;
  struct Waiting {
    std::string id;
    image::Image base;
  };
  std::deque<Waiting> queue_;
  bool running_ = false;
  asio::thread_pool workers_{1};
  TaskGroup tasks_;
};

}  // namespace osb::lifecycle
