// The language between `opensandbox serve` and `opensandbox-launch`: fixed-layout messages on one
// SOCK_SEQPACKET connection. No paths, no JSON; names are ids and digests that the launcher checks again.
//
// Requests carry `seq`; the reply repeats it. Events come unasked with seq 0. Several requests may be under way.
// All integers are host order (both ends are one machine); structs are trivially copyable and padded by hand.
#pragma once
#include <string.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/id.h"
#include "model/limits.h"
#include "model/policy.h"

namespace osb::wire {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kMaxLayers = 64;
inline constexpr std::size_t kMaxMessage = 16 * 1024;

enum class Op : std::uint32_t {
  hello = 1,     // HelloRequest   -> HelloReply
  create,        // CreateRequest  -> CreateReply
  destroy,       // SandboxRequest -> StatusReply; answers when the kill is issued and the socket is gone
  freeze,        // SandboxRequest -> StatusReply; answers when every process is frozen
  thaw,          // SandboxRequest -> StatusReply
  dial,          // SandboxRequest -> StatusReply + one descriptor: a TCP socket in the sandbox's network
  set_deadline,  // DeadlineRequest -> StatusReply
  list,          // ListRequest    -> ListReply; page by `after`
  usage,         // SandboxRequest -> UsageReply, or StatusReply when there is no such sandbox
  stop,          // StopRequest    -> StatusReply; the launcher destroys everything (if asked to) and exits
  snapshot,      // SnapshotRequest + a directory -> SnapshotReply; what the sandbox has changed, as a layer
  stage_volume,  // StageVolumeRequest (+ a detached mount) -> StatusReply; the next create of this id mounts it
  claim = 40,    // ClaimRequest   -> CreateReply; a spare sandbox gets its set-up and begins
  exited = 100,  // event: ExitedEvent
};

struct Head {
  std::uint32_t version = kVersion;
  Op op{};
  std::uint64_t seq = 0;
};

// An id is exactly kIdLength characters, zero padded.
struct Key {
  char text[32] = {};
};
inline std::string_view text_of(const Key& key) { return {key.text, ::strnlen(key.text, sizeof key.text)}; }

struct Digest {
  char hex[64] = {};  // sha-256 of a layer (lowercase hex, not terminated): the name of its directory in the layer store
};

struct HelloRequest {
  Head head{.op = Op::hello};
  // The data directory of whoever asks; 0 = does not matter. A launcher that works with another one makes way for its successor.
  std::uint64_t data_device = 0;
  std::uint64_t data_inode = 0;
};

struct HelloReply {
  Head head{.op = Op::hello};
  std::uint32_t pid = 0;
  std::uint32_t live = 0;       // sandboxes it holds, spares not counted
  std::uint32_t cgroup_v2 = 0;  // 1: controllers on v2; 0: on v1
  std::uint32_t landlock_abi = 0;
};

// Carries one descriptor: a sealed memfd with execd's set-up (JSON the launcher passes on and never reads). A spare's
// holds what is known already: its execd starts with it and waits, and nothing runs in the sandbox until it is claimed.
struct CreateRequest {
  Head head{.op = Op::create};
  Key id;
  std::uint64_t deadline_boot_nanos = 0;  // CLOCK_BOOTTIME; 0 = none
  Limits limits;
  Policy policy;
  std::uint8_t host_view = 0;        // 1: the host's /usr (and /bin, /lib*) are part of the root, read-only
  std::uint8_t answer_at_exec = 0;   // 1: nothing but execd has to start, so the answer need not wait until it is ready
  std::uint8_t snapshot_layers = 0;  // so many of the topmost layers are snapshots: they also hold the writable places
  std::uint8_t volume_count = 0;     // so many were staged before
  std::uint8_t spare = 0;            // 1: made ahead of time
  std::uint8_t unused[3] = {};
  std::uint32_t layer_count = 0;
  Digest layers[kMaxLayers];  // topmost first; sent truncated to layer_count
};

// The steps of a create, in order. A reply to a failed create names one of them.
enum class Step : std::uint32_t {
  none = 0,
  validate,
  ledger,
  id_range,
  user_namespace,
  network_namespace,
  cgroup,
  cgroup_limits,
  disk,
  listener,
  clone,
  // ---- from here on inside the new process (enter/enter.cc) ----
  cgroup_attach,
  cgroup_namespace,
  join_network,
  hostname,
  keyring,
  writable_layer,
  image_layers,
  root_overlay,
  host_view,
  proc,
  proc_masks,
  root_switch,
  sys,
  dev,
  etc,
  scratch,
  rlimits,
  landlock_rules,
  join_user,
  capabilities,
  no_new_privs,
  landlock,
  descriptors,
  seccomp,
  exec,
  entrypoint,  // execd runs, the sandbox's own first program does not
  // ---- added later; numbers stay what they are ----
  restored_places,  // inside the new process, after host_view
  volume_helpers,   // in the launcher, after disk
  volume_sources,   // inside the new process, after image_layers
  volume_mounts,    // inside the new process, after scratch
  held_root,        // in the launcher, after volume_helpers
  count_,
};
const char* name_of(Step step);
std::optional<Step> step_named(std::string_view name);

struct CreateReply {
  Head head{.op = Op::create};
  Step failed = Step::none;   // none = made
  std::int32_t sys = 0;       // errno of the failed step
  std::int32_t pid = 0;       // host pid of the sandbox's pid 1
  std::uint32_t id_base = 0;  // first host id of its range
  char detail[96] = {};       // a word about what was being done ("mount proc"), never a client's text
};

// What the new process writes on its report pipe: the step that failed, or none when execd is ready.
struct ChildReport {
  Step step = Step::none;
  std::int32_t sys = 0;
};

struct SandboxRequest {
  Head head;
  Key id;
};

// Carries the set-up. A sandbox is claimed once; EBUSY after that.
struct ClaimRequest {
  Head head{.op = Op::claim};
  Key id;
  std::uint64_t deadline_boot_nanos = 0;
  std::uint32_t answer_at_once = 0;  // 1: no first program has to start, so the answer need not wait for execd
};

struct DeadlineRequest {
  Head head{.op = Op::set_deadline};
  Key id;
  std::uint64_t deadline_boot_nanos = 0;
};

// A volume of a sandbox that is about to be created. Of the host: carries a detached mount of what serve resolved. Named: the
// launcher finds or makes the image of that id itself.
struct StageVolumeRequest {
  Head head{.op = Op::stage_volume};
  Key id;
  Key volume;                    // id of a named volume; empty = the descriptor is the volume
  std::uint64_t size_bytes = 0;  // of a named volume that has no image yet
  std::uint8_t read_only = 0;
  std::uint8_t unused[7] = {};
  char mount_path[256] = {};  // inside the sandbox; absolute, plain
  char sub_path[256] = {};    // inside a named volume; relative, plain, "" = all of it
};

// Carries one descriptor: the directory `work` of the image store's tmp/, where the launcher makes `layer`.
struct SnapshotRequest {
  Head head{.op = Op::snapshot};
  Key id;
  Key work;  // its name, 32 hex: the launcher opens it itself and compares
  std::uint64_t max_bytes = 0;
  std::uint64_t max_entries = 0;
  std::uint64_t max_nanos = 0;
};

struct SnapshotReply {
  Head head{.op = Op::snapshot};
  std::int32_t sys = 0;  // 0 = done; ENOENT = no such sandbox; EBUSY = another one is under way
  std::uint32_t unused = 0;
  std::uint64_t bytes = 0;         // of data copied
  std::uint64_t entries = 0;       // files, links and directories made
  std::uint64_t passed_over = 0;   // sockets
  std::uint64_t frozen_nanos = 0;  // how long the sandbox stood still
  char detail[160] = {};           // names of the sandbox's files in it are escaped
};

struct StopRequest {
  Head head{.op = Op::stop};
  std::uint32_t destroy_all = 0;
};

struct StatusReply {
  Head head;
  std::int32_t sys = 0;  // 0 = done; ENOENT = no such sandbox
  char detail[96] = {};
};

enum class Cause : std::uint32_t { unknown = 0, exited, signalled, out_of_memory, expired, destroyed };

struct ListRequest {
  Head head{.op = Op::list};
  Key after;  // empty = from the start
};

struct ListEntry {
  Key id;
  std::int32_t pid = 0;
  std::uint8_t frozen = 0;
  std::uint8_t dying = 0;
  std::uint8_t spare = 0;  // nobody's yet
  std::uint8_t unused = 0;
};

struct ListReply {
  static constexpr std::size_t kPage = 256;
  Head head{.op = Op::list};
  std::uint32_t count = 0;
  std::uint32_t more = 0;
  ListEntry entries[kPage];  // in id order; sent truncated to count
};

// Measured by the kernel from outside the sandbox; what cannot be read is 0.
struct UsageReply {
  Head head{.op = Op::usage};
  std::int32_t sys = 0;  // where StatusReply has it
  std::uint64_t cpu_nanos = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t pids = 0;
  std::uint64_t oom_kills = 0;
  std::uint64_t cpu_throttled_nanos = 0;
  std::uint64_t cpu_limit_millis = 0;
  std::uint64_t memory_reclaimable_bytes = 0;
  std::uint64_t pids_limit = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_limit_bytes = 0;
  std::uint64_t network_received_bytes = 0;
  std::uint64_t network_sent_bytes = 0;
};

// The sandbox's pid 1 has ended and everything of it is gone from the host.
struct ExitedEvent {
  Head head{.op = Op::exited};
  Key id;
  Cause cause = Cause::unknown;
  std::int32_t status = 0;  // exit code or signal number
  std::uint64_t cpu_nanos = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t oom_kills = 0;
};

static_assert(offsetof(UsageReply, sys) == offsetof(StatusReply, sys));
static_assert(std::is_trivially_copyable_v<CreateRequest> && std::is_trivially_copyable_v<ListReply>);
static_assert(sizeof(ListReply) <= kMaxMessage && sizeof(CreateRequest) <= kMaxMessage);

}  // namespace osb::wire
