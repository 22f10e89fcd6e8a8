#include "runtime/process/process_runtime.h"

#include <unistd.h>

#include "base/text.h"
#include "image/image.h"

namespace osb::runtime {
namespace {

std::uint64_t host_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Error cannot(std::string_view field, std::string_view why, std::string_view hint) {
  return Error(Errc::invalid_argument, cat("the runtime process ", why)).with_code("SANDBOX::INVALID_PARAMETER").at(field).with_hint(hint);
}

Error unsupported(std::string_view what) {
  return Error(Errc::unsupported, cat("the runtime process cannot ", what)).with_code("SANDBOX::API_NOT_SUPPORTED");
}

}  // namespace

Result<> check_for_process(const SandboxSpec& spec, const image::Image& image, std::uint64_t memory_bytes) {
  if (!spec.snapshot_id.empty() || image.snapshot_layers != 0) return cannot("snapshotId", "has no snapshots", "use the runtime native");
  if (!image.host_view)
    return cannot("image.uri", "shows the programs of this host and no other image", "ask for the image host, or use the runtime native");
  if (spec.policy.user == UserMode::root)
    return cannot("extensions.opensandbox.mode", "has one user, which is never root", "leave the mode out, or use the runtime native");
  if (spec.policy.root == RootMode::writable)
    return cannot("extensions.opensandbox.root", "has a read-only root", "write below /workspace, /home/user and /tmp");
  if (spec.limits.disk_bytes > memory_bytes / 2)
    return cannot("resourceLimits.disk", cat("keeps files in memory, at most half of this host's: ", memory_bytes / 2 / (1 << 20), "Mi"),
                  "ask for less, or give a directory as the workspace (run --workspace, process.workspace)");
  return Ok{};
}

ProcessRuntime::ProcessRuntime(std::unique_ptr<NativeRuntime> inner, const ProcessOptions& options)
    : inner_(std::move(inner)),
      images_(options.images),
      memory_bytes_(host_memory()),
      capabilities_{.name = "process", .limits_disk = options.workspace.empty(), .network_isolation = true, .measures = true} {}

Task<Result<std::unique_ptr<ProcessRuntime>>> ProcessRuntime::start(asio::io_context& io, ProcessOptions options) {
  NativeOptions inner;
  inner.images = options.images;
  inner.one_user = true;
  inner.launch.confines = true;
  inner.launch.run_dir = options.run_dir;
  inner.launch.data_dir = options.data_dir;
  inner.launch.launch_path = options.confine_path;
  inner.launch.execd_path = options.execd_path;
  inner.launch.private_instance = options.private_instance;
  inner.launch.workspace = options.workspace;
  CO_TRY(auto started, co_await NativeRuntime::start(io, std::move(inner)));
  co_return std::unique_ptr<ProcessRuntime>(new ProcessRuntime(std::move(started), options));
}

Task<Result<>> ProcessRuntime::create(SandboxId id, SandboxSpec spec, std::uint64_t deadline_boot_nanos) {
  CO_TRY(auto image, spec.snapshot_id.empty() ? images_->resolve(spec.image) : images_->snapshot(spec.snapshot_id));
  if (auto fine = check_for_process(spec, image, memory_bytes_); !fine) co_return fine;
  auto made = co_await inner_->create(std::move(id), std::move(spec), deadline_boot_nanos);
  co_return made;
}

Task<Result<>> ProcessRuntime::pause(SandboxId) { co_return unsupported("pause sandboxes"); }
Task<Result<>> ProcessRuntime::resume(SandboxId) { co_return unsupported("pause sandboxes"); }
Task<Result<SnapshotFacts>> ProcessRuntime::snapshot(SandboxId, int, std::string, SnapshotLimits) {
  co_return unsupported("take snapshots");
}

}  // namespace osb::runtime
