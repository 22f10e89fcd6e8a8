// The one interface behind which sandboxes are made. A runtime knows nothing of HTTP, the store or lifecycle.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/result.h"
#include "http/http.h"
#include "model/sandbox.h"

namespace osb::runtime {

// Asked instead of guessed: a caller checks what a runtime can do before it promises it.
struct Capabilities {
  std::string name;  // "native"
  bool pause = false;
  bool limits_disk = false;
  bool network_isolation = false;
  bool survives_serve_restart = false;
  bool measures = false;  // usage() is the kernel's word; execd need not be asked
  bool snapshots = false;
  bool volumes = false;
  bool spares = false;  // prepare() and claim()
};

// A volume of a sandbox about to be made.
struct VolumeMount {
  Fd tree;                // of the host: a detached mount
  std::string volume_id;  // named: which one
  std::uint64_t size_bytes = 0;
  bool read_only = false;
  std::string mount_path;
  std::string sub_path;  // inside a named one
};

struct SnapshotLimits {
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint32_t seconds = 0;
};

struct SnapshotFacts {
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t passed_over = 0;   // sockets
  std::uint64_t frozen_nanos = 0;  // how long the sandbox stood still
};

enum class EndCause { unknown, exited, signalled, out_of_memory, expired, destroyed };

// A sandbox ended and nothing of it is left on the host.
struct Ended {
  SandboxId id;
  EndCause cause = EndCause::unknown;
  int status = 0;  // exit code or signal number
  std::uint64_t cpu_nanos = 0;
  std::uint64_t memory_peak_bytes = 0;
};

// What a sandbox uses now, measured from outside it. What a runtime cannot tell is 0.
struct Usage {
  std::uint64_t cpu_nanos = 0;  // since it was made
  std::uint64_t cpu_throttled_nanos = 0;
  std::uint64_t cpu_limit_millis = 0;
  std::uint64_t memory_bytes = 0;              // charged to it, file pages included
  std::uint64_t memory_reclaimable_bytes = 0;  // of those: file pages nobody used lately
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t disk_bytes = 0;  // of its writable layer
  std::uint64_t disk_limit_bytes = 0;
  std::uint64_t pids = 0;
  std::uint64_t pids_limit = 0;
  std::uint64_t network_received_bytes = 0;
  std::uint64_t network_sent_bytes = 0;
  std::uint64_t oom_kills = 0;
};

struct Live {
  SandboxId id;
  bool frozen = false;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual const Capabilities& capabilities() const = 0;

  // Makes the sandbox with execd answering on execd(id). A failure leaves nothing behind and names the step.
  // `deadline_boot_nanos`: CLOCK_BOOTTIME at which the runtime kills it by itself; 0 = none.
  virtual Task<Result<>> create(SandboxId id, SandboxSpec spec, std::uint64_t deadline_boot_nanos) = 0;
  // The next create of this id mounts these.
  virtual void stage_volumes(const SandboxId& id, std::vector<VolumeMount> volumes) = 0;
  // Takes the content of a named volume away; idempotent. Blocks: call it from a worker.
  virtual Result<> remove_volume(const std::string& volume_id) = 0;
  // A sandbox made ahead of time: complete, but nothing runs in it until claim() gives it what makes it somebody's
  // (environment, first program, deadline). Image, policy and limits are those of `spec`. unsupported where there is none.
  virtual Task<Result<>> prepare(SandboxId, SandboxSpec) { co_return Error(Errc::unsupported, "this runtime makes nothing ahead of time"); }
  virtual Task<Result<>> claim(SandboxId, SandboxSpec, std::uint64_t /*deadline_boot_nanos*/) {
    co_return Error(Errc::unsupported, "this runtime makes nothing ahead of time");
  }
  // Answers when the sandbox is unreachable and dying; Ended follows when it is gone. not_found when unknown.
  virtual Task<Result<>> destroy(SandboxId id) = 0;
  virtual Task<Result<>> pause(SandboxId id) = 0;  // answers when every process is frozen
  virtual Task<Result<>> resume(SandboxId id) = 0;
  virtual Task<Result<>> set_deadline(SandboxId id, std::uint64_t deadline_boot_nanos) = 0;
  virtual Task<Result<std::vector<Live>>> list() = 0;
  virtual Task<Result<Usage>> usage(SandboxId id) = 0;
  // What the sandbox has changed, as the directory `layer` in `directory`, whose name in the image store is `work`. The sandbox
  // stands still meanwhile. conflict while it is being paused or another one is taken.
  virtual Task<Result<SnapshotFacts>> snapshot(SandboxId id, int directory, std::string work, SnapshotLimits limits) = 0;

  // Where execd listens.
  virtual http::Target execd(const SandboxId& id) const = 0;
  // A connection to 127.0.0.1:port inside the sandbox's network.
  virtual Task<Result<std::unique_ptr<http::ClientConnection>>> dial(SandboxId id, std::uint16_t port) = 0;
};

// Delivered on the I/O thread. Set once, before the first create.
using EndedHandler = std::function<void(const Ended&)>;

}  // namespace osb::runtime
