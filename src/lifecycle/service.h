// The life of sandboxes: the one place that changes a sandbox's state.
//
// The in-memory table is what callers see; the store is its durable copy; the runtime is the truth of the kernel.
// start() brings the three together: live and unknown to the store -> destroyed; recorded and no longer live ->
// Failed/SANDBOX_LOST, listed until it is deleted or expires.
//
// Everything runs on the I/O thread. A coroutine looks its sandbox up again after every co_await: it may have ended,
// expired or been deleted meanwhile.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/task.h"
#include "async/task_group.h"
#include "audit/audit.h"
#include "base/result.h"
#include "image/image.h"
#include "lifecycle/admission.h"
#include "lifecycle/boot_timer.h"
#include "lifecycle/entrance.h"
#include "lifecycle/idempotency.h"
#include "lifecycle/measure.h"
#include "lifecycle/pools.h"
#include "lifecycle/pulls.h"
#include "lifecycle/snapshots.h"
#include "lifecycle/spares.h"
#include "lifecycle/table.h"
#include "lifecycle/volumes.h"
#include "model/caller.h"
#include "model/sandbox.h"
#include "runtime/runtime.h"
#include "store/store.h"

namespace osb::lifecycle {

struct Options {
  std::size_t max_sandboxes = 20'000;               // SANDBOX::LIMIT_REACHED past it
  AdmissionLimits admission;                        // its `sandboxes` is the line above
  Entrance::Rooms host_room;                        // what the host has left; empty = it is not looked at
  std::optional<std::int64_t> max_timeout_seconds;  // cap for create; nullopt = none
  bool allow_root_mode = true;
  bool allow_permissive_syscalls = false;
  StringMap image_aliases;                       // name a client sends -> name the image store knows; records keep what was sent
  bool pull_missing = true;                      // images that are not here and whose name says where they are
  std::optional<std::uint64_t> max_image_bytes;  // past it the least recently used images go; nullopt = none goes by itself
  std::size_t max_finished = 10'000;             // ended sandboxes kept for reading; the oldest go first
  std::string boot_id;                           // "" = the kernel's
  VolumeOptions volumes;
  SpareOptions spares;
  std::vector<PoolRecord> pools;        // of the configuration
  WallTime (*wall_clock)() = wall_now;  // tests turn the wall clock; deadlines never follow it
};

struct Filter {
  std::vector<State> states;   // any of; empty = all
  StringMap metadata;          // all of
  std::string extension = {};  // must be there, with any value; "" = does not matter
};

struct Listing {
  std::vector<Sandbox> items;  // this page, newest first
  std::size_t total = 0;
};

struct Created {
  Sandbox sandbox;
  bool replayed = false;  // it was there already: the key had been used for the same request
};

struct Pruned {
  std::vector<std::string> names;
  std::uint64_t freed_bytes = 0;
};

// What is being made goes through many hands, and is large.
using EntryPtr = std::unique_ptr<Entry>;
using SandboxPtr = std::unique_ptr<Sandbox>;

class Service {
 public:
  Service(asio::io_context& io, store::Store& store, audit::Log& audit, image::Store& images, runtime::Runtime& runtime, Options options);
  ~Service();

  Task<Result<>> start();  // reconcile, then timers
  Task<void> stop();
  // What the operator may change while we run: caps, capacity, aliases. Sandboxes that exist keep what they have.
  void set_options(Options options);

  Task<Result<Sandbox>> create(SandboxSpec spec, Caller caller);
  // The same key and request again give the same sandbox; see idempotency.h.
  Task<Result<Created>> create_once(SandboxSpec spec, CreateOnce once, Caller caller);
  Result<Sandbox> get(const SandboxId& id, const Caller& caller) const;
  Result<const Sandbox*> look_at(const SandboxId& id, const Caller& caller) const;  // the same, until the next co_await
  Listing list(const Filter& filter, std::size_t page, std::size_t page_size, const Caller& caller) const;
  Task<Result<>> destroy(SandboxId id, Caller caller);
  Task<Result<>> pause(SandboxId id, Caller caller);
  Task<Result<>> resume(SandboxId id, Caller caller);
  Task<Result<WallTime>> renew(SandboxId id, WallTime expires_at, Caller caller);
  // nullopt value = remove the key.
  Result<Sandbox> patch_metadata(const SandboxId& id, const std::map<std::string, std::optional<std::string>>& patch, const Caller& caller);

  Result<EventLog> events(const SandboxId& id, const Caller& caller) const;
  // What a sandbox that has processes uses now. No ownership check: get() or a token comes first.
  Task<Result<Measure>> measure(SandboxId id);
  Snapshots& snapshots() { return *snapshots_; }
  Result<SnapshotSource> snapshot_source(const SandboxId& id, const Caller& caller) const;
  bool uses_snapshot(const std::string& id) const;  // a sandbox made from it lives, or is being made
  Volumes& volumes() { return *volumes_; }
  Pools& pools() { return *pools_; }
  Spares& spares() { return spares_; }
  std::size_t allocated(const std::string& pool) const { return table_.of_pool(pool); }  // living sandboxes of it
  std::size_t volume_uses(const std::string& volume_id) const;                           // by sandboxes that live
  WallTime now() const { return options_.wall_clock(); }

  // For the proxy: no ownership check (the route has its own token), only existence and state.
  const Sandbox* find(const SandboxId& id) const;  // until the next co_await; null when there is none
  runtime::Runtime& runtime() { return runtime_; }

  void on_ended(const runtime::Ended& ended);  // wired to the runtime by the daemon
  // Whose sandbox it is; empty when there is none. For counting a key's requests by the sandbox they go to.
  std::string_view owner_of(std::string_view id) const;
  bool has_extension(const SandboxId& id, std::string_view name) const;  // without a copy of the record
  // Creates under way and in line; whether the host has room for sandboxes that nobody asked for yet.
  Entrance& entrance() { return entrance_; }
  std::size_t live() const { return table_.live() + making_.size(); }
  bool image_in_use(const std::string& digest_or_name) const;
  bool image_in_use(const image::Image& image) const;

  // Images. A pull is shared with creates that wait for the same one; let the ticket go to leave it.
  std::shared_ptr<PullTicket> pull_image(const std::string& reference, image::RegistryAuth auth) {
    return pulls_.join(reference, std::move(auth));
  }
  Result<> check_pull_room() const { return pulls_.check_room(); }
  Task<Result<>> remove_image(std::string reference, Caller caller);
  // Images without a name; with `all` also named ones. Never one that a sandbox runs on.
  Task<Result<Pruned>> prune_images(bool all, Caller caller);
  void image_added();  // by an import or a pull: the bound on bytes may be passed

 private:
  using Details = std::vector<std::pair<std::string, std::string>>;
  friend class Pools;  // what a pool is made from is what a sandbox is made from
  struct Turn;         // pause or resume, as data (turn.cc)

  // The only function that writes a state: checks may_go, stamps the time, keeps the durable copy up to date.
  Result<> move_to(Sandbox& sandbox, State to, std::string reason, std::string message);

  // service.cc: one sandbox
  Result<Entry*> owned(const SandboxId& id, const Caller& caller);
  void save(const std::string& id);  // table -> store: put, or erase when it is gone; a failure is tried again later
  void remove(const std::string& id);
  void set_leaving(Entry& entry, Leaving leaving);
  Result<> record(const Caller& caller, std::string action, const std::string& id, Details detail = {});
  void note_failure(const Caller& caller, std::string action, const std::string& id, const Error& error);
  void note(std::string action, const std::string& id, Details detail);  // what happened without a caller

  // create.cc
  Task<Result<SandboxPtr>> create_shielded(SandboxSpec spec, Caller caller, std::optional<store::CreateKey> key);
  Task<Result<SandboxPtr>> make(EntryPtr entry, Caller caller);
  Result<> check_options(const SandboxSpec& spec) const;
  Result<> check_policy(const SandboxSpec& spec) const;
  Result<EntryPtr> prepare(SandboxSpec spec, const Caller& caller);
  Result<image::Image> source_image(const SandboxSpec& spec, const Caller& caller) const;
  Result<SandboxPtr> admit(EntryPtr entry, const Caller& caller);
  Task<std::optional<Result<SandboxPtr>>> claim_spare(EntryPtr& entry, Caller caller);
  std::optional<Shape> shape_of(const Entry& entry) const;
  SandboxSpec effective(SandboxSpec spec) const;
  Task<Result<SandboxPtr>> settle_create(EntryPtr entry, Caller caller, Result<> made);
  Task<void> undo_create(SandboxId id);
  void note_refusal(const Caller& caller, const Error& error);
  std::string image_for(const std::string& reference) const;
  static Details create_details(const Entry& entry);

  // pending.cc
  bool may_pull(const std::string& reference, const Error& missing) const;
  void mark_pending(Entry& entry) const;
  Result<SandboxPtr> begin_pending(EntryPtr entry, ImageAuth auth, const Caller& caller);
  Entry* pending(const SandboxId& id);
  Task<void> finish_pending(SandboxId id, std::shared_ptr<PullTicket> ticket, Caller caller);
  Task<void> start_pending(SandboxId id, Caller caller);
  void fail_pending(Entry& entry, std::string reason, const Error& error);
  void give_up_pending(Sandbox record);

  // shelf.cc
  class Doomed;
  image::Store::Hold hold_image(const image::Image& image);
  Task<Result<>> remove_image_shielded(std::string reference, Caller caller);
  Task<Result<Pruned>> prune_shielded(bool all, Caller caller);
  Task<std::uint64_t> remove_all(std::vector<image::Image> victims);
  Task<void> collect_images();
  bool is_removable(const image::Image& image) const;

  // idempotency.cc
  Task<Result<Created>> create_once_shielded(SandboxSpec spec, CreateOnce once, Caller caller);
  Task<Result<Created>> replay(std::shared_ptr<CreateKeys::Slot> slot, Caller caller);

  // destroy.cc
  Task<Result<>> destroy_shielded(SandboxId id, Caller caller);
  void keep_ending(Entry& entry);
  Task<void> end_until_gone(SandboxId id);

  // turn.cc
  Task<Result<>> turn(SandboxId id, Caller caller, const Turn& turn);
  Result<> settle(const SandboxId& id, const Turn& turn, Result<> done);
  Task<void> undo(SandboxId id, const Turn& opposite);

  // renew.cc
  Task<Result<WallTime>> renew_shielded(SandboxId id, WallTime expires_at, Caller caller);
  Result<std::uint64_t> deadline_for(const Sandbox& sandbox, WallTime expires_at) const;
  Result<> replace(Entry& entry, Sandbox changed, const Caller& caller, std::string action, Details detail);

  // ended.cc
  void finish(Entry& entry, const runtime::Ended& ended);

  // reconcile.cc
  Task<Result<>> adopt(Sandbox record, bool frozen);
  void keep_ended(Sandbox record);
  Task<void> destroy_orphan(SandboxId id);
  void place(Sandbox record);

  // expiry.cc
  Task<void> run_timer();
  void arm_timer();
  void expire_due(std::int64_t now);
  Task<void> expire(SandboxId id);
  void save_unsaved(std::int64_t now);

  asio::io_context& io_;
  store::Store& store_;
  audit::Log& audit_;
  image::Store& images_;
  runtime::Runtime& runtime_;
  Options options_;
  Table table_;
  Entrance entrance_;
  struct Refused {
    std::int64_t tell_again_at = 0;  // boot time
    std::size_t untold = 0;
  };
  std::map<std::pair<std::string, std::string>, Refused> refused_;  // by caller and code
  CreateKeys create_keys_;
  // Creates under way. The end of a sandbox may be told before its create answers.
  struct Making {
    std::optional<runtime::Ended> ended;
    std::string image_name;
    std::string image_digest;
  };
  std::map<std::string, Making, std::less<>> making_;
  std::map<std::string, std::weak_ptr<void>> holds_;  // one for all sandboxes of an image, by digest
  std::set<std::string> doomed_;                      // images being removed
  bool collecting_ = false;
  std::multiset<std::string> making_from_;  // snapshots that creates under way stand on
  std::set<std::string> unsaved_;           // ids whose stored copy differs from the table
  std::int64_t save_again_at_ = 0;          // boot time
  std::vector<runtime::Ended> early_;       // told before start() had the table ready
  std::unique_ptr<Snapshots> snapshots_;
  std::unique_ptr<Volumes> volumes_;
  std::unique_ptr<Pools> pools_;
  bool started_ = false;
  bool stopping_ = false;
  BootTimer timer_;
  Pulls pulls_;
  std::map<std::string, std::shared_ptr<PullTicket>> waiting_;  // Pending, by id
  Spares spares_;
  TaskGroup tasks_;
};

}  // namespace osb::lifecycle
