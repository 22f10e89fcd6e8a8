// The runtime `process`: sandboxes that an ordinary user makes for himself, with no privilege at all (docs/runtimes.md).
//
// They are made by opensandbox-confine, which speaks the launcher's language; what it cannot do is refused here, before anything is made.
#pragma once
#include <memory>
#include <string>

#include "image/image.h"
#include "runtime/native/native_runtime.h"
#include "runtime/runtime.h"

namespace osb::runtime {

struct ProcessOptions {
  std::string run_dir;  // of the instance
  std::string data_dir;
  std::string confine_path;
  std::string execd_path;
  std::string workspace;  // directory of the host that every sandbox has as /workspace; "" = each its own, of memory
  bool private_instance = false;
  const image::Store* images = nullptr;  // outlives the runtime
};

// What of a request this runtime cannot do; `memory_bytes` is the host's.
Result<> check_for_process(const SandboxSpec& spec, const image::Image& image, std::uint64_t memory_bytes);

class ProcessRuntime final : public Runtime {
 public:
  static Task<Result<std::unique_ptr<ProcessRuntime>>> start(asio::io_context& io, ProcessOptions options);

  void set_ended_handler(EndedHandler handler) { inner_->set_ended_handler(std::move(handler)); }
  // Every sandbox ends with us.
  Task<void> stop() { return inner_->stop(true); }

  const Capabilities& capabilities() const override { return capabilities_; }
  Task<Result<>> create(SandboxId id, SandboxSpec spec, std::uint64_t deadline_boot_nanos) override;
  void stage_volumes(const SandboxId&, std::vector<VolumeMount>) override {}
  Result<> remove_volume(const std::string&) override { return Ok{}; }
  Task<Result<>> destroy(SandboxId id) override { return inner_->destroy(std::move(id)); }
  Task<Result<>> pause(SandboxId id) override;
  Task<Result<>> resume(SandboxId id) override;
  Task<Result<>> set_deadline(SandboxId id, std::uint64_t nanos) override { return inner_->set_deadline(std::move(id), nanos); }
  Task<Result<std::vector<Live>>> list() override { return inner_->list(); }
  Task<Result<Usage>> usage(SandboxId id) override { return inner_->usage(std::move(id)); }
  Task<Result<SnapshotFacts>> snapshot(SandboxId id, int directory, std::string work, SnapshotLimits limits) override;
  http::Target execd(const SandboxId& id) const override { return inner_->execd(id); }
  Task<Result<std::unique_ptr<http::ClientConnection>>> dial(SandboxId id, std::uint16_t port) override {
    return inner_->dial(std::move(id), port);
  }

 private:
  ProcessRuntime(std::unique_ptr<NativeRuntime> inner, const ProcessOptions& options);

  std::unique_ptr<NativeRuntime> inner_;
  const image::Store* images_;
  std::uint64_t memory_bytes_;
  Capabilities capabilities_;
};

}  // namespace osb::runtime
