// The life of sandboxes: the one place that changes a sandbox's state.
//
// The in-memory table is what callers see; the store is its durable copy; the runtime is the truth of the kernel.
// start() brings the three together: unknown to the store -> destroyed; unknown to the runtime -> gone.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "async/task_group.h"
#include "audit/audit.h"
#include "base/result.h"
#include "image/image.h"
#include "model/caller.h"
#include "model/sandbox.h"
#include "runtime/runtime.h"
#include "store/store.h"

namespace osb::lifecycle {

struct Options {
  std::size_t max_sandboxes = 20'000;                       // Errc::exhausted past it
  std::optional<std::int64_t> max_timeout_seconds;          // cap for create; nullopt = none
  bool allow_root_mode = true;
  bool allow_permissive_syscalls = false;
};

struct Filter {
  std::vector<State> states;  // any of; empty = all
  StringMap metadata;         // all of
};

struct Listing {
  std::vector<Sandbox> items;  // this page, newest first
  std::size_t total = 0;
};

class Service {
 public:
  Service(asio::io_context& io, store::Store& store, audit::Log& audit, image::Store& images, runtime::Runtime& runtime, Options options);
  ~Service();

  Task<Result<>> start();  // reconcile, then timers
  Task<void> stop();

  Task<Result<Sandbox>> create(SandboxSpec spec, Caller caller);
  Result<Sandbox> get(const SandboxId& id, const Caller& caller) const;
  Listing list(const Filter& filter, std::size_t page, std::size_t page_size, const Caller& caller) const;
  Task<Result<>> destroy(SandboxId id, Caller caller);
  Task<Result<>> pause(SandboxId id, Caller caller);
  Task<Result<>> resume(SandboxId id, Caller caller);
  Task<Result<WallTime>> renew(SandboxId id, WallTime expires_at, Caller caller);
  // nullopt value = remove the key.
  Result<Sandbox> patch_metadata(const SandboxId& id, const std::map<std::string, std::optional<std::string>>& patch, const Caller& caller);

  // For the proxy: no ownership check (the route has its own token), only existence and state.
  Result<Sandbox> find(const SandboxId& id) const;
  runtime::Runtime& runtime() { return runtime_; }

  void on_ended(const runtime::Ended& ended);  // wired to the runtime by the daemon
  std::size_t live() const { return table_.size(); }
  bool image_in_use(const std::string& digest_or_name) const;

 private:
  // The only function that writes a state: checks may_go, stamps the time, stores, returns the new value.
  Result<> move_to(Sandbox& sandbox, State to, std::string reason, std::string message);

  asio::io_context& io_;
  store::Store& store_;
  audit::Log& audit_;
  image::Store& images_;
  runtime::Runtime& runtime_;
  Options options_;
  std::map<std::string, Sandbox, std::less<>> table_;
  TaskGroup tasks_;
};

}  // namespace osb::lifecycle
