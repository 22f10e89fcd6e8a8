// The native runtime: sandboxes made from kernel parts by opensandbox-launch.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/native/launch_client.h"
#include "runtime/runtime.h"

namespace osb::image {
class Store;
}

namespace osb::runtime {

struct NativeOptions {
  LaunchOptions launch;
  const image::Store* images = nullptr;  // outlives the runtime
  bool one_user = false;                 // in its sandboxes execd is the same user as its programs
};

class NativeRuntime final : public Runtime {
 public:
  static Task<Result<std::unique_ptr<NativeRuntime>>> start(asio::io_context& io, NativeOptions options);
  NativeRuntime(asio::io_context& io, NativeOptions options);
  ~NativeRuntime() override;

  void set_ended_handler(EndedHandler handler) { ended_ = std::move(handler); }
  // Sandboxes go on without us; `destroy_all` ends them first. An idle launcher ends either way.
  Task<void> stop(bool destroy_all);

  const Capabilities& capabilities() const override { return capabilities_; }
  Task<Result<>> create(SandboxId id, SandboxSpec spec, std::uint64_t deadline_boot_nanos) override;
  void stage_volumes(const SandboxId& id, std::vector<VolumeMount> volumes) override;
  Result<> remove_volume(const std::string& volume_id) override;
  Task<Result<>> prepare(SandboxId id, SandboxSpec spec) override;
  Task<Result<>> claim(SandboxId id, SandboxSpec spec, std::uint64_t deadline_boot_nanos) override;
  Task<Result<>> destroy(SandboxId id) override;
  Task<Result<>> pause(SandboxId id) override;
  Task<Result<>> resume(SandboxId id) override;
  Task<Result<>> set_deadline(SandboxId id, std::uint64_t deadline_boot_nanos) override;
  Task<Result<std::vector<Live>>> list() override;
  Task<Result<Usage>> usage(SandboxId id) override;
  Task<Result<SnapshotFacts>> snapshot(SandboxId id, int directory, std::string work, SnapshotLimits limits) override;
  http::Target execd(const SandboxId& id) const override;
  Task<Result<std::unique_ptr<http::ClientConnection>>> dial(SandboxId id, std::uint16_t port) override;

 private:
  Task<Result<std::vector<Live>>> meet();
  Task<Result<>> make(SandboxId id, wire::CreateRequest request, Fd setup);
  Task<Result<>> destroy_within(SandboxId id, std::chrono::steady_clock::duration limit);
  Task<bool> clear_for_another(SandboxId id);
  Task<Result<LaunchAnswer>> ask_about(wire::Op op, SandboxId id);
  Task<Result<std::uint8_t>> hand_over_volumes(SandboxId id);
  Task<Result<>> command(wire::Op op, SandboxId id, const char* verb);
  Task<void> end_until_gone(SandboxId id);
  void on_exited(const wire::ExitedEvent& event);
  Task<void> compare_after_reconnect();

  NativeOptions options_;
  Capabilities capabilities_;
  LaunchClient launcher_;
  Fd for_claim_;  // empty memory for the set-up of the next claim, made while nobody waits
  EndedHandler ended_;
  std::map<std::string, std::vector<VolumeMount>> staged_;  // until their create
  std::set<std::string, std::less<>> live_;                 // being made, or made and not ended
  std::set<std::string, std::less<>> making_;               // of those: not answered yet; a lost launcher answers for the others
  std::set<std::string, std::less<>> adopted_unasked_;      // of those: what came of an earlier try, whose end is nobody's news
  TaskGroup endings_;                                       // of what nobody waits for
};

}  // namespace osb::runtime
