// For tests only: a runtime made of memory, with failures and pauses on demand, and an image store that knows
// a handful of names. No process, no file.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/text.h"
#include "image/image.h"
#include "runtime/runtime.h"

namespace osb::lifecycle {

class FakeRuntime : public runtime::Runtime {
 public:
  struct Made {
    SandboxSpec spec;
    std::uint64_t deadline_boot_nanos = 0;
    bool frozen = false;
  };

  explicit FakeRuntime(asio::io_context& io) : io_(io) {
    capabilities_.name = "fake";
    capabilities_.pause = capabilities_.limits_disk = capabilities_.network_isolation = capabilities_.survives_serve_restart = true;
    capabilities_.measures = true;
    capabilities_.snapshots = capabilities_.volumes = true;
  }

  // ---- what a test does to it: `op` is create, prepare, claim, destroy, pause, resume, set_deadline, list or usage --

  void on_ended(runtime::EndedHandler handler) { ended_ = std::move(handler); }
  // The next call of `op` fails with this instead of doing anything. Several may be queued.
  void fail_next(const std::string& op, Error error) { failures_[op].push_back(std::move(error)); }
  // Calls of `op` wait (before they do anything) until release(op).
  void hold(const std::string& op) { gates_.try_emplace(op, io_.get_executor(), Timer::time_point::max()); }
  void release(const std::string& op) { gates_.erase(op); }
  void release_one(const std::string& op) { gates_.at(op).cancel_one(); }  // the one that waits longest
  // Only the next call of `op` waits, until release_held(op).
  void hold_next(const std::string& op) { hold_next_.insert(op); }
  void release_held(const std::string& op) { gates_.erase("held " + op); }
  // Calls of `op` do their work at once but answer only after release("answer " + op).
  void hold_answer(const std::string& op) { hold("answer " + op); }
  std::size_t waiting(const std::string& op) const { return waiting_.contains(op) ? waiting_.at(op) : 0; }
  // The sandbox ends by itself; the handler hears of it now.
  void end(const SandboxId& id, runtime::EndCause cause, int status = 0) {
    sandboxes.erase(id.text());
    tell(id, cause, status);
  }

  std::map<std::string, Made> sandboxes;  // what lives; a test may add and take away
  std::vector<std::string> calls;         // "create <id>", in order
  http::Target execd_target;              // answered by execd() for every id
  bool tells_destroyed = true;            // Ended(destroyed) follows a destroy
  std::function<Task<Result<std::unique_ptr<http::ClientConnection>>>(SandboxId, std::uint16_t)> dial_with;

  std::size_t count(std::string_view op) const {
    std::size_t n = 0;
    for (const auto& call : calls) n += call.starts_with(cat(op, " ")) ? 1 : 0;
    return n;
  }

  // ---- the interface --------------------------------------------------------------------------------------------------

  const runtime::Capabilities& capabilities() const override { return capabilities_; }
  void set_pause_supported(bool supported) { capabilities_.pause = supported; }
  void set_spares_supported(bool supported) { capabilities_.spares = supported; }

  Task<Result<>> create(SandboxId id, SandboxSpec spec, std::uint64_t deadline_boot_nanos) override {
    if (auto begun = co_await begin("create", id.text()); !begun) co_return begun;
    sandboxes[id.text()] = {std::move(spec), deadline_boot_nanos, false};
    co_await pass("answer create");
    co_return Ok{};
  }

  std::map<std::string, std::size_t> staged;  // how many volumes, by sandbox
  std::vector<std::string> removed_volumes;
  void stage_volumes(const SandboxId& id, std::vector<runtime::VolumeMount> volumes) override { staged[id.text()] = volumes.size(); }
  Result<> remove_volume(const std::string& id) override {
    removed_volumes.push_back(id);
    return Ok{};
  }

  Task<Result<>> prepare(SandboxId id, SandboxSpec spec) override {
    if (auto begun = co_await begin("prepare", id.text()); !begun) co_return begun;
    sandboxes[id.text()] = {std::move(spec), 0, false};
    co_return Ok{};
  }

  Task<Result<>> claim(SandboxId id, SandboxSpec spec, std::uint64_t deadline_boot_nanos) override {
    if (auto begun = co_await begin("claim", id.text()); !begun) co_return begun;
    auto found = sandboxes.find(id.text());
    if (found == sandboxes.end()) co_return unknown(id);
    found->second = {std::move(spec), deadline_boot_nanos, false};
    co_return Ok{};
  }

  Task<Result<>> destroy(SandboxId id) override {
    if (auto begun = co_await begin("destroy", id.text()); !begun) co_return begun;
    if (sandboxes.erase(id.text()) == 0) co_return unknown(id);
    if (tells_destroyed) tell(id, runtime::EndCause::destroyed, 0);
    co_await pass("answer destroy");
    co_return Ok{};
  }

  Task<Result<>> pause(SandboxId id) override { return freeze("pause", std::move(id), true); }
  Task<Result<>> resume(SandboxId id) override { return freeze("resume", std::move(id), false); }

  Task<Result<>> set_deadline(SandboxId id, std::uint64_t deadline_boot_nanos) override {
    if (auto begun = co_await begin("set_deadline", id.text()); !begun) co_return begun;
    auto found = sandboxes.find(id.text());
    if (found == sandboxes.end()) co_return unknown(id);
    found->second.deadline_boot_nanos = deadline_boot_nanos;
    co_await pass("answer set_deadline");
    co_return Ok{};
  }

  Task<Result<std::vector<runtime::Live>>> list() override {
    if (auto begun = co_await begin("list", ""); !begun) co_return std::move(begun).error();
    std::vector<runtime::Live> out;
    for (const auto& [id, made] : sandboxes) out.push_back({*SandboxId::parse(id), made.frozen});
    co_await pass("answer list");
    co_return out;
  }

  Task<Result<runtime::Usage>> usage(SandboxId id) override {
    if (auto begun = co_await begin("usage", id.text()); !begun) co_return std::move(begun).error();
    auto found = sandboxes.find(id.text());
    if (found == sandboxes.end()) co_return unknown(id);
    runtime::Usage usage;
    usage.cpu_nanos = 1'000'000;
    usage.memory_bytes = 1 << 20;
    usage.memory_peak_bytes = 2 << 20;
    usage.memory_limit_bytes = found->second.spec.limits.memory_bytes;
    usage.pids = 1;
    co_return usage;
  }

  Task<Result<runtime::SnapshotFacts>> snapshot(SandboxId id, int, std::string, runtime::SnapshotLimits) override {
    if (auto begun = co_await begin("snapshot", id.text()); !begun) co_return std::move(begun).error();
    if (!sandboxes.contains(id.text())) co_return unknown(id);
    co_return runtime::SnapshotFacts{.bytes = 10, .entries = 3};
  }

  http::Target execd(const SandboxId&) const override { return execd_target; }

  Task<Result<std::unique_ptr<http::ClientConnection>>> dial(SandboxId id, std::uint16_t port) override {
    if (dial_with) co_return co_await dial_with(std::move(id), port);
    co_return Error(Errc::unavailable, cat("nothing listens on port ", port));
  }

 private:
  static Error unknown(const SandboxId& id) { return {Errc::not_found, cat("no sandbox ", id.text())}; }

  void tell(const SandboxId& id, runtime::EndCause cause, int status) {
    if (ended_) ended_({id, cause, status, 5'000'000, 3 << 20});
  }

  Task<Result<>> begin(std::string op, std::string id) {
    calls.push_back(cat(op, " ", id));
    co_await pass(op);
    auto& queue = failures_[op];
    if (queue.empty()) co_return Ok{};
    Error error = std::move(queue.front());
    queue.pop_front();
    co_return error;
  }

  // Destroying the gate's timer wakes everyone who waits at it.
  Task<void> pass(std::string gate) {
    auto found = gates_.find(gate);
    if (hold_next_.erase(gate) > 0) found = gates_.try_emplace("held " + gate, io_.get_executor(), Timer::time_point::max()).first;
    if (found == gates_.end()) co_return;
    ++waiting_[gate];
    co_await found->second.async_wait(nothrow);
    --waiting_[gate];
  }

  Task<Result<>> freeze(std::string op, SandboxId id, bool frozen) {
    if (auto begun = co_await begin(op, id.text()); !begun) co_return begun;
    auto found = sandboxes.find(id.text());
    if (found == sandboxes.end()) co_return unknown(id);
    found->second.frozen = frozen;
    co_await pass("answer " + op);
    co_return Ok{};
  }

  asio::io_context& io_;
  runtime::Capabilities capabilities_;
  runtime::EndedHandler ended_;
  std::map<std::string, std::deque<Error>> failures_;
  std::map<std::string, Timer> gates_;
  std::set<std::string> hold_next_;
  std::map<std::string, std::size_t> waiting_;
};

class FakeImages : public image::Store {
 public:
  std::set<std::string> names{"host", "debian:12"};

  Result<image::Image> resolve(const std::string& reference) const override {
    if (!names.contains(reference))
      return Error(Errc::not_found, cat("image ", json_string(reference), " is not here"))
          .with_hint("import it with: opensandbox image import");
    return make(reference);
  }
  std::vector<image::Image> list() const override {
    std::vector<image::Image> out;
    for (const auto& name : names) out.push_back(make(name));
    return out;
  }
  Result<image::Image> import(const std::string&, const ImportOptions&) override {
    return Error(Errc::unsupported, "a fake imports nothing");
  }
  Result<> remove(const std::string& reference, const std::function<bool(const image::Image&)>& in_use) override {
    if (!names.contains(reference)) return Error(Errc::not_found, "no such image");
    if (in_use && in_use(make(reference))) return Error(Errc::conflict, "in use");
    names.erase(reference);
    return Ok{};
  }

  std::map<std::string, image::Image> kept;  // snapshots
  Result<std::unique_ptr<image::LayerDraft>> begin_snapshot() override {
    return std::unique_ptr<image::LayerDraft>(std::make_unique<FakeDraft>());
  }
  Result<image::Image> commit_snapshot(const image::LayerDraft&, const std::string& id, const image::Image& base,
                                       std::uint64_t bytes) override {
    image::Image image = base;
    image.layers.insert(image.layers.begin(), std::string(64, 'b'));
    image.snapshot_layers = base.snapshot_layers + 1;
    image.size_bytes = bytes;
    kept[id] = image;
    return image;
  }
  Result<image::Image> snapshot(const std::string& id) const override {
    auto found = kept.find(id);
    if (found == kept.end()) return Error(Errc::not_found, "no such snapshot");
    return found->second;
  }
  Result<std::vector<std::string>> snapshots() const override {
    std::vector<std::string> ids;
    for (const auto& [id, image] : kept) ids.push_back(id);
    return ids;
  }
  Result<> remove_snapshot(const std::string& id) override {
    kept.erase(id);
    return Ok{};
  }

  // Pulls wait until the test lets them go, or until they are cancelled.
  struct Gate {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::optional<Error> failure;
    bool open = false;
    int pulls = 0;
    int cancelled = 0;
    std::string password;  // of the last one
  };
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  void let_pulls_go(std::optional<Error> failure = {}) {
    std::lock_guard lock(gate->mutex);
    gate->failure = std::move(failure);
    gate->open = true;
    gate->changed.notify_all();
  }
  Result<image::Image> pull(const std::string& reference, const PullOptions& options) override {
    std::unique_lock lock(gate->mutex);
    ++gate->pulls;
    gate->password = options.auth.password;
    if (!gate->changed.wait(lock, options.stop, [&] { return gate->open; })) {
      ++gate->cancelled;
      return Error(Errc::conflict, "the pull was cancelled");
    }
    if (gate->failure) return *gate->failure;
    return make(reference);
  }
  Result<> check_pullable(const std::string& reference) const override {
    auto host = reference.substr(0, reference.find('/'));
    bool names_one = host.size() < reference.size() && host.find_first_of(".:") != std::string::npos;
    if (!names_one) return Error(Errc::not_found, "the name says no registry");
    return Ok{};
  }
  void set_registries(image::Registries) override {}
  void note_use(const image::Image&) override {}
  Hold hold(const image::Image&) override { return {}; }
  std::vector<image::StoredImage> by_last_use() const override {
    std::vector<image::StoredImage> out;
    for (const auto& name : names)
      if (name != "host") out.push_back({make(name), 0, name.starts_with("sha256:")});
    return out;
  }
  std::uint64_t stored_bytes() const override { return names.size() * 100; }
  void set_in_use(InUse) override {}

 private:
  struct FakeDraft final : image::LayerDraft {
    std::string hex = std::string(32, 'd');
    int dir() const override { return -1; }
    const std::string& name() const override { return hex; }
  };
  static image::Image make(const std::string& name) {
    image::Image image;
    image.name = name;
    image.digest = name == "host" ? "host" : "sha256:" + std::string(64, 'a');
    image.host_view = name == "host";
    image.layers = {std::string(64, 'a')};
    return image;
  }
};

}  // namespace osb::lifecycle
