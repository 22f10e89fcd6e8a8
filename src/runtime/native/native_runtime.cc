#include "runtime/native/native_runtime.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/log.h"
#include "base/text.h"
#include "image/image.h"
#include "runtime/native/plan.h"

namespace osb::runtime {
namespace {

using namespace std::chrono_literals;

// Generous: a create on an overloaded host is slow, not broken. The client of the API has its own patience.
constexpr auto kCreateDeadline = 60s;
constexpr auto kCommandDeadline = 15s;
constexpr auto kDialDeadline = 5s;
constexpr auto kStartDeadline = 30s;
constexpr auto kClearDeadline = 5s;
constexpr auto kClearPause = 2ms;
constexpr int kMostCreates = 3;  // of one sandbox whose launchers die
constexpr std::chrono::milliseconds kFirstPause = 100ms;
constexpr std::chrono::milliseconds kLongestPause = 10s;

Fd empty_memory() { return Fd(::memfd_create("setup", MFD_CLOEXEC | MFD_ALLOW_SEALING)); }

// Sealed before it leaves: execd reads exactly what was planned.
Result<Fd> sealed_memory(const std::string& text, Fd memory = empty_memory()) {
  if (!memory) return Error::from_errno("memfd_create", errno);
  // execd reads from the place where the descriptor stands: at the beginning.
  if (::pwrite(memory.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return Error::from_errno("write set-up", errno);
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
    return Error::from_errno("seal set-up", errno);
  return memory;
}

std::optional<SandboxId> id_of(const wire::Key& key) { return SandboxId::parse(wire::text_of(key)); }

EndCause cause_of(wire::Cause cause) {
  switch (cause) {
    case wire::Cause::unknown: return EndCause::unknown;
    case wire::Cause::exited: return EndCause::exited;
    case wire::Cause::signalled: return EndCause::signalled;
    case wire::Cause::out_of_memory: return EndCause::out_of_memory;
    case wire::Cause::expired: return EndCause::expired;
    case wire::Cause::destroyed: return EndCause::destroyed;
  }
  return EndCause::unknown;
}

Usage usage_of(const wire::UsageReply& reply) {
  return {.cpu_nanos = reply.cpu_nanos,
          .cpu_throttled_nanos = reply.cpu_throttled_nanos,
          .cpu_limit_millis = reply.cpu_limit_millis,
          .memory_bytes = reply.memory_bytes,
          .memory_reclaimable_bytes = reply.memory_reclaimable_bytes,
          .memory_peak_bytes = reply.memory_peak_bytes,
          .memory_limit_bytes = reply.memory_limit_bytes,
          .disk_bytes = reply.disk_bytes,
          .disk_limit_bytes = reply.disk_limit_bytes,
          .pids = reply.pids,
          .pids_limit = reply.pids_limit,
          .network_received_bytes = reply.network_received_bytes,
          .network_sent_bytes = reply.network_sent_bytes,
          .oom_kills = reply.oom_kills};
}

Error snapshot_error(int sys, std::string_view detail) {
  switch (sys) {
    case ENOENT: return Error(Errc::not_found, "the sandbox has ended", sys);
    case EBUSY: return Error(Errc::conflict, "the sandbox is being paused or copied already", sys);
    case ETIMEDOUT: return Error(Errc::timeout, std::string(detail), sys);
    case EFBIG:
    case E2BIG:
    case ELOOP: return Error(Errc::too_large, std::string(detail), sys);
    case ENOSPC: return Error(Errc::exhausted, std::string(detail), sys);
    default: return Error(Errc::internal, std::string(detail), sys);
  }
}

Result<> created(const LaunchAnswer& answer) {
  TRY(auto reply, reply_in<wire::CreateReply>(answer));
  if (reply.failed == wire::Step::none) return Ok{};
  reply.detail[sizeof reply.detail - 1] = 0;
  return describe_failure(reply.failed, reply.sys, reply.detail).in("create sandbox");
}

}  // namespace

NativeRuntime::NativeRuntime(asio::io_context& io, NativeOptions options)
    : options_(std::move(options)),
      capabilities_{.name = "native",
                    .pause = true,
                    .limits_disk = true,
                    .network_isolation = true,
                    .survives_serve_restart = true,
                    .measures = true,
                    .snapshots = true,
                    .volumes = true,
                    .spares = true},
      launcher_(io, options_.launch),
      endings_(io.get_executor()) {
  launcher_.on_event([this](const wire::ExitedEvent& event) { on_exited(event); });
  launcher_.on_reconnect([this] { return compare_after_reconnect(); });
}

NativeRuntime::~NativeRuntime() = default;

Task<Result<std::unique_ptr<NativeRuntime>>> NativeRuntime::start(asio::io_context& io, NativeOptions options) {
  auto runtime = std::make_unique<NativeRuntime>(io, std::move(options));
  auto started = co_await runtime->launcher_.start();
  if (!started) co_return std::move(started).error().in("start the launcher");
  // The one we have met may be on its way out; then there is another one in a moment.
  auto give_up = std::chrono::steady_clock::now() + kStartDeadline;
  auto present = co_await runtime->meet();
  while (!present && present.error().kind() == Errc::unavailable && std::chrono::steady_clock::now() < give_up)
    present = co_await runtime->meet();
  if (!present) {
    co_await runtime->launcher_.stop();
    co_await runtime->endings_.stop();
    co_return std::move(present).error().in("ask the launcher for its sandboxes");
  }
  for (const auto& live : *present) runtime->live_.insert(live.id.text());
  co_return std::move(runtime);
}

// A launcher that outlived another serve may work with another data directory. It goes when it hears of ours, and the next one has it.
Task<Result<std::vector<Live>>> NativeRuntime::meet() {
  wire::HelloRequest request;
  struct stat ours{};
  if (::stat(options_.launch.data_dir.c_str(), &ours) == 0) {
    request.data_device = ours.st_dev;
    request.data_inode = ours.st_ino;
  }
  auto greeted = co_await launcher_.ask(bytes_of(request), -1, kCommandDeadline);
  if (!greeted) co_return std::move(greeted).error();
  auto present = co_await list();
  co_return present;
}

Task<void> NativeRuntime::stop(bool destroy_all) {
  wire::StopRequest request;
  request.destroy_all = destroy_all ? 1 : 0;
  co_await endings_.stop();
  auto stopped = co_await launcher_.ask(bytes_of(request), -1, kCommandDeadline);
  if (!stopped) log::debug("launcher did not answer stop", {{"error", stopped.error().what()}});
  co_await launcher_.stop();
  co_await endings_.stop();  // of a comparison that was under way
}

Task<Result<>> NativeRuntime::create(SandboxId id, SandboxSpec spec, std::uint64_t deadline_boot_nanos) {
  CO_TRY(auto image, spec.snapshot_id.empty() ? options_.images->resolve(spec.image) : options_.images->snapshot(spec.snapshot_id));
  CO_TRY(auto request, plan_create(id, spec, image, deadline_boot_nanos));
  CO_TRY(auto setup, sealed_memory(plan_setup(spec, image, options_.one_user)));
  auto made = co_await make(std::move(id), request, std::move(setup));
  co_return made;
}

Task<Result<>> NativeRuntime::prepare(SandboxId id, SandboxSpec spec) {
  CO_TRY(auto image, options_.images->resolve(spec.image));
  if (image.digest != spec.image_digest) co_return Error(Errc::conflict, cat("image ", image.name, " is another one by now"));
  CO_TRY(auto request, plan_create(id, spec, image, 0));
  request.spare = 1;
  CO_TRY(auto setup, sealed_memory(plan_setup(spec, image, options_.one_user)));
  auto made = co_await make(std::move(id), request, std::move(setup));
  if (!for_claim_) for_claim_ = empty_memory();
  co_return made;
}

Task<Result<>> NativeRuntime::make(SandboxId id, wire::CreateRequest request, Fd setup) {
  std::size_t size = sizeof request - (wire::kMaxLayers - request.layer_count) * sizeof(wire::Digest);
  auto volumes = co_await hand_over_volumes(id);
  if (!volumes) co_return std::move(volumes).error().in("volumes");
  request.volume_count = *volumes;
  live_.insert(id.text());
  making_.insert(id.text());
  auto answer = co_await launcher_.ask(bytes_of(request, size), setup.get(), kCreateDeadline);
  // Staged volumes are lost as well, so that a create with some is not asked for again.
  for (int again = 0; again < kMostCreates && !answer && answer.error().kind() == Errc::unavailable && request.volume_count == 0; ++again) {
    bool cleared = co_await clear_for_another(id);
    if (!cleared || ::lseek(setup.get(), 0, SEEK_SET) != 0) break;
    answer = co_await launcher_.ask(bytes_of(request, size), setup.get(), kCreateDeadline);
  }
  making_.erase(id.text());
  if (!answer) {
    live_.erase(id.text());
    // Nobody waits for it any more: if the launcher makes it after all, it ends at once.
    endings_.spawn("end what came too late", end_until_gone(id));
    co_return std::move(answer).error().in("create sandbox");
  }
  auto made = created(*answer);
  if (!made) live_.erase(id.text());
  co_return made;
}

// A create that was lost with its launcher may have been finished without it and adopted by the next one, but nobody knows how far it
// came. It is ended; when nothing is left of it the next one is asked as if it were the first.
Task<bool> NativeRuntime::clear_for_another(SandboxId id) {
  adopted_unasked_.insert(id.text());  // before the question: its end may be told together with the answer
  auto ended = co_await destroy_within(id, kClearDeadline);
  auto give_up = std::chrono::steady_clock::now() + kClearDeadline;
  while (ended && adopted_unasked_.contains(id.text()) && std::chrono::steady_clock::now() < give_up) co_await sleep_for(kClearPause);
  bool told = adopted_unasked_.erase(id.text()) == 0;
  co_return ended ? told : ended.error().kind() == Errc::not_found;
}

// A claim that fails is the end of the spare. One that the launcher refuses it takes apart itself.
Task<Result<>> NativeRuntime::claim(SandboxId id, SandboxSpec spec, std::uint64_t deadline_boot_nanos) {
  CO_TRY(auto image, options_.images->resolve(spec.image));
  if (!for_claim_) for_claim_ = empty_memory();
  CO_TRY(auto setup, sealed_memory(plan_setup(spec, image, options_.one_user), std::move(for_claim_)));
  auto request = plan_claim(id, spec, deadline_boot_nanos);
  // No first program has to start, so there is nothing to wait for: a spare that is dead by now is told as the end of a sandbox.
  if (request.answer_at_once) {
    auto told = launcher_.tell(bytes_of(request), setup.get());
    if (told) live_.insert(id.text());
    co_return told;
  }
  auto answer = co_await launcher_.ask(bytes_of(request), setup.get(), kCreateDeadline);
  auto claimed = answer ? created(*answer) : Result<>(std::move(answer).error().in("claim sandbox"));
  if (claimed) {
    live_.insert(id.text());
    co_return claimed;
  }
  live_.erase(id.text());
  endings_.spawn("end what was claimed in vain", end_until_gone(id));
  co_return claimed;
}

void NativeRuntime::stage_volumes(const SandboxId& id, std::vector<VolumeMount> volumes) {
  if (!volumes.empty()) staged_[id.text()] = std::move(volumes);
}

Task<Result<std::uint8_t>> NativeRuntime::hand_over_volumes(SandboxId id) {
  auto staged = staged_.extract(id.text());
  if (staged.empty()) co_return std::uint8_t{0};
  for (const auto& volume : staged.mapped()) {
    wire::StageVolumeRequest request;
    request.id = key_of(id);
    volume.volume_id.copy(request.volume.text, sizeof request.volume.text);
    request.size_bytes = volume.size_bytes;
    request.read_only = volume.read_only ? 1 : 0;
    volume.mount_path.copy(request.mount_path, sizeof request.mount_path - 1);
    volume.sub_path.copy(request.sub_path, sizeof request.sub_path - 1);
    auto answer = co_await launcher_.ask(bytes_of(request), volume.tree ? volume.tree.get() : -1, kCommandDeadline);
    if (!answer) co_return std::move(answer).error();
    CO_TRY(auto reply, reply_in<wire::StatusReply>(*answer));
    if (reply.sys != 0) co_return Error::from_errno("stage volume", reply.sys);
  }
  co_return static_cast<std::uint8_t>(staged.mapped().size());
}

Result<> NativeRuntime::remove_volume(const std::string& volume_id) {
  for (const char* suffix : {".img", ".img.partial"}) {
    auto path = cat(options_.launch.data_dir, "/volumes/", volume_id, suffix);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Error::from_errno(cat("remove ", path), errno);
  }
  return Ok{};
}

Task<Result<LaunchAnswer>> NativeRuntime::ask_about(wire::Op op, SandboxId id) {
  wire::SandboxRequest request;
  request.head.op = op;
  request.id = key_of(id);
  auto answer = co_await launcher_.ask(bytes_of(request), -1, kCommandDeadline);
  co_return answer;
}

Task<Result<>> NativeRuntime::command(wire::Op op, SandboxId id, const char* verb) {
  auto answer = co_await ask_about(op, id);
  if (!answer) co_return std::move(answer).error().in(verb);
  CO_TRY(auto reply, reply_in<wire::StatusReply>(*answer));
  if (reply.sys == 0) co_return Ok{};
  Errc kind = reply.sys == ENOENT ? Errc::not_found : reply.sys == EBUSY ? Errc::conflict : Errc::internal;
  co_return Error::from_errno(verb, reply.sys, kind);
}

Task<Result<>> NativeRuntime::destroy(SandboxId id) { return destroy_within(std::move(id), kCommandDeadline); }

// An answer that was lost with its launcher is asked for again: the next one knows what lives.
Task<Result<>> NativeRuntime::destroy_within(SandboxId id, std::chrono::steady_clock::duration limit) {
  auto give_up = std::chrono::steady_clock::now() + limit;
  for (;;) {
    auto gone = co_await command(wire::Op::destroy, id, "destroy sandbox");
    bool lost = !gone && gone.error().kind() == Errc::unavailable;
    if (!lost || std::chrono::steady_clock::now() >= give_up) co_return gone;
    co_await yield_now();
  }
}

// For what no caller waits for. It is not given up: what lives and is in no list would live until the launcher ends.
Task<void> NativeRuntime::end_until_gone(SandboxId id) {
  for (auto pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    auto gone = co_await destroy(id);
    if (gone || gone.error().kind() == Errc::not_found) co_return;
    log::warn("sandbox that nobody waits for not ended, will try again", {{"sandbox", id.text()}, {"error", gone.error().what()}});
    co_await sleep_for(pause);
  }
}

Task<Result<>> NativeRuntime::pause(SandboxId id) { return command(wire::Op::freeze, std::move(id), "pause sandbox"); }
Task<Result<>> NativeRuntime::resume(SandboxId id) { return command(wire::Op::thaw, std::move(id), "resume sandbox"); }

Task<Result<>> NativeRuntime::set_deadline(SandboxId id, std::uint64_t deadline_boot_nanos) {
  wire::DeadlineRequest request;
  request.id = key_of(id);
  request.deadline_boot_nanos = deadline_boot_nanos;
  auto answer = co_await launcher_.ask(bytes_of(request), -1, kCommandDeadline);
  if (!answer) co_return std::move(answer).error().in("set deadline");
  CO_TRY(auto reply, reply_in<wire::StatusReply>(*answer));
  if (reply.sys != 0) co_return Error::from_errno("set deadline", reply.sys, reply.sys == ENOENT ? Errc::not_found : Errc::internal);
  co_return Ok{};
}

Task<Result<std::vector<Live>>> NativeRuntime::list() {
  std::vector<Live> all;
  wire::ListRequest request;
  for (;;) {
    auto answer = co_await launcher_.ask(bytes_of(request), -1, kCommandDeadline);
    if (!answer) co_return std::move(answer).error();
    wire::ListReply page;
    std::memcpy(&page, answer->bytes.data(), std::min(answer->bytes.size(), sizeof page));
    if (page.count > wire::ListReply::kPage) co_return Error(Errc::internal, "bad list from the launcher");
    for (std::uint32_t i = 0; i < page.count; ++i) {
      auto id = id_of(page.entries[i].id);
      // Spares are between the launcher and the connection that asked for them; it ends those of one that is gone.
      if (id && !page.entries[i].dying && !page.entries[i].spare) all.push_back({*id, page.entries[i].frozen != 0});
    }
    if (!page.more || page.count == 0) co_return all;
    request.after = page.entries[page.count - 1].id;
  }
}

Task<Result<Usage>> NativeRuntime::usage(SandboxId id) {
  auto answer = co_await ask_about(wire::Op::usage, std::move(id));
  if (!answer) co_return std::move(answer).error().in("usage");
  CO_TRY(auto status, reply_in<wire::StatusReply>(*answer));
  if (status.sys != 0) co_return Error::from_errno("usage", status.sys, status.sys == ENOENT ? Errc::not_found : Errc::internal);
  CO_TRY(auto reply, reply_in<wire::UsageReply>(*answer));
  co_return usage_of(reply);
}

Task<Result<SnapshotFacts>> NativeRuntime::snapshot(SandboxId id, int directory, std::string work, SnapshotLimits limits) {
  wire::SnapshotRequest request;
  request.id = key_of(id);
  work.copy(request.work.text, sizeof request.work.text);
  request.max_bytes = limits.bytes;
  request.max_entries = limits.entries;
  request.max_nanos = static_cast<std::uint64_t>(limits.seconds) * 1'000'000'000;
  // The launcher keeps the time; this is for a launcher that does not.
  auto answer = co_await launcher_.ask(bytes_of(request), directory, std::chrono::seconds(limits.seconds) + kCommandDeadline);
  if (!answer) co_return std::move(answer).error();
  CO_TRY(auto reply, reply_in<wire::SnapshotReply>(*answer));
  reply.detail[sizeof reply.detail - 1] = 0;
  if (reply.sys != 0) co_return snapshot_error(reply.sys, reply.detail);
  co_return SnapshotFacts{reply.bytes, reply.entries, reply.passed_over, reply.frozen_nanos};
}

http::Target NativeRuntime::execd(const SandboxId& id) const {
  return http::Target::unix_socket(cat(options_.launch.run_dir, "/sandboxes/", id.text(), ".sock"));
}

Task<Result<std::unique_ptr<http::ClientConnection>>> NativeRuntime::dial(SandboxId id, std::uint16_t port) {
  auto answer = co_await ask_about(wire::Op::dial, std::move(id));
  if (!answer) co_return std::move(answer).error().in("dial");
  CO_TRY(auto reply, reply_in<wire::StatusReply>(*answer));
  if (reply.sys != 0 || !answer->descriptor)
    co_return Error::from_errno("dial", reply.sys, reply.sys == ENOENT ? Errc::not_found : Errc::internal);
  auto connected = co_await http::connect_fd(std::move(answer->descriptor), port, kDialDeadline);
  co_return connected;
}

void NativeRuntime::on_exited(const wire::ExitedEvent& event) {
  auto id = id_of(event.id);
  if (!id || adopted_unasked_.erase(id->text()) > 0) return;
  live_.erase(id->text());
  if (ended_) ended_({*id, cause_of(event.cause), event.status, event.cpu_nanos, event.memory_peak_bytes});
}

// A launcher that was lost may have lost sandboxes with it; those that are gone have ended without an event. One that is being made is
// not missing: whether it was asked of the old launcher or of the new one, its own question tells what became of it.
Task<void> NativeRuntime::compare_after_reconnect() {
  co_await yield_now();  // questions that the old one answered are over by then, and those that it did not
  std::vector<std::string> known;
  std::ranges::set_difference(live_, making_, std::back_inserter(known));
  auto present = co_await list();
  while (!present && present.error().kind() == Errc::timeout) present = co_await list();
  if (!present) co_return;  // lost again; the next one is compared as well
  std::set<std::string, std::less<>> now;
  for (const auto& live : *present) now.insert(live.id.text());
  for (const auto& text : known) {
    if (now.contains(text) || !live_.contains(text)) continue;
    live_.erase(text);
    auto id = SandboxId::parse(text);
    if (id && ended_) ended_({*id, EndCause::unknown, 0, 0, 0});
  }
  // The other way round: a create that failed when the connection broke may have been finished or adopted all the same.
  for (const auto& live : *present)
    if (!live_.contains(live.id.text())) endings_.spawn("end orphan", end_until_gone(live.id));
}

}  // namespace osb::runtime
