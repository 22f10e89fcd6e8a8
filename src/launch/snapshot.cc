// A snapshot of a sandbox: frozen, copied by a helper beside the loop, thawed, answered. A sandbox that was paused before stays so.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/launcher.h"
#include "sys/kernel_file.h"
#include "sys/raw.h"

namespace osb::launch {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kLongest = 3'600'000 * kMillisecond;
constexpr std::uint64_t kMostEntries = 100'000'000;
constexpr std::uint64_t kMostBytes = 1ull << 44;

bool is_hex(std::string_view text) { return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

// The directory is opened here again by its name and compared, because serve is not trusted with where root writes files
// that keep their owners and setuid bits.
Result<> check_work_dir(const std::string& data_dir, const wire::Key& name, int given) {
  std::string_view text(name.text, sizeof name.text);
  if (!is_hex(text)) return Error(Errc::invalid_argument, "work name", EINVAL);
  TRY(auto tmp, sys::open_dir(data_dir + "/images/tmp"));
  Fd own(sys::raw::openat2(tmp.get(), std::string(text).c_str(), O_PATH | O_DIRECTORY,
                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV));
  struct stat ours{}, theirs{};
  if (!own || ::fstat(own.get(), &ours) != 0 || ::fstat(given, &theirs) != 0) return Error::from_errno("work directory", errno);
  if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) return Error(Errc::invalid_argument, "work directory", EINVAL);
  return Ok{};
}

}  // namespace

void Launcher::snapshot(const Pending& to, const wire::SnapshotRequest& request, Fd work) {
  auto* sandbox = find(request.id);
  if (sandbox == nullptr || sandbox->phase == Phase::dying) return reply_snapshot(to, {}, ENOENT);
  if (sandbox->phase != Phase::live || sandbox->freeze || sandbox->capture) return reply_snapshot(to, {}, EBUSY, "busy");
  bool bounded = request.max_bytes - 1 < kMostBytes && request.max_entries - 1 < kMostEntries && request.max_nanos - 1 < kLongest;
  if (!bounded || !work) return reply_snapshot(to, {}, EINVAL, "limits");
  if (auto checked = check_work_dir(options_.host.data_dir, request.work, work.get()); !checked)
    return reply_snapshot(to, {}, checked.error().sys(), checked.error().what());
  auto now = static_cast<std::uint64_t>(boot_now_nanos());
  sandbox->capture = Capture{.to = to,
                             .work = std::move(work),
                             .limits = {request.max_bytes, request.max_entries},
                             .began = now,
                             .deadline = now + request.max_nanos};
  schedule(sandbox->capture->deadline, Chore::capture_deadline, sandbox->id);
  if (sandbox->frozen) return begin_capture(*sandbox);
  sandbox->capture->thaw = true;
  sandbox->spoils = true;
  // Written down before it is done: whoever adopts a sandbox that we left frozen thaws it again.
  auto marked = sys::write_new_file(AT_FDCWD, frozen_mark(sandbox->id).c_str(), "", 0600);
  if (!marked && marked.error().sys() != EEXIST) return end_capture(*sandbox, marked.error().sys(), "mark");
  if (auto asked = groups_.freeze(sandbox->berth.group.name, true); !asked)
    return end_capture(*sandbox, asked.error().sys(), "cgroup.freeze");
  check_frozen(*sandbox);
}

void Launcher::begin_capture(Sandbox& sandbox) {
  CaptureJob job;
  job.sandbox = sandbox.pidfd.get();
  job.first_id = sandbox.berth.first_id();
  job.work_dir = host_.work_dir();
  for (const auto& directory : host_.facts().directories) job.host_directories.push_back(directory.name);
  job.into = sandbox.capture->work.get();
  job.limits = sandbox.capture->limits;
  auto helper = start_capture(job);
  if (!helper) return end_capture(sandbox, helper.error().sys(), helper.error().what());
  sandbox.capture->helper = std::move(helper->pidfd);
  sandbox.capture->report = std::move(helper->report);
  sandbox.capture->work.reset();  // the helper's copy keeps the directory locked for as long as it writes
  auto watched = watch(sandbox.capture->helper.get(), {.what = Watched::capture, .client = 0, .id = sandbox.id});
  if (watched) return;
  stop_capture(sandbox);
  on_capture_end(sandbox);
}

void Launcher::stop_capture(Sandbox& sandbox) {
  if (sandbox.capture && sandbox.capture->helper) sys::raw::pidfd_send_signal(sandbox.capture->helper.get(), SIGKILL);
}

void Launcher::on_capture_end(Sandbox& sandbox) {
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(sandbox.capture->helper.get()), &info, WEXITED);
  CaptureReport report;
  bool told = ::read(sandbox.capture->report.get(), &report, sizeof report) == static_cast<ssize_t>(sizeof report);
  if (!told) report = {.sys = sandbox.capture->late ? ETIMEDOUT : ECANCELED};
  report.detail[sizeof report.detail - 1] = 0;
  if (!told) std::strcpy(report.detail, sandbox.capture->late ? "it took too long" : "the helper was stopped");
  unwatch(sandbox.capture->helper.get());
  sandbox.capture->facts = report;
  end_capture(sandbox, report.sys, report.detail);
}

void Launcher::end_capture(Sandbox& sandbox, int sys, std::string_view detail) {
  Capture capture = *std::exchange(sandbox.capture, std::nullopt);
  if (capture.thaw) {
    auto thawed = groups_.freeze(sandbox.berth.group.name, false);
    if (!thawed) log::error("sandbox not thawed after its snapshot", {{"id", sandbox.id}, {"error", thawed.error().what()}});
    ::unlink(frozen_mark(sandbox.id).c_str());
  }
  capture.facts.bytes = sys == 0 ? capture.facts.bytes : 0;
  reply_snapshot(capture.to, capture, sys, detail);
}

void Launcher::reply_snapshot(const Pending& to, const Capture& capture, int sys, std::string_view detail) {
  wire::SnapshotReply answer;
  answer.head.seq = to.seq;
  answer.sys = sys;
  answer.bytes = capture.facts.bytes;
  answer.entries = capture.facts.entries;
  answer.passed_over = capture.facts.passed_over;
  if (capture.thaw) answer.frozen_nanos = static_cast<std::uint64_t>(boot_now_nanos()) - capture.began;
  detail.copy(answer.detail, sizeof answer.detail - 1);
  clients_.reply(to, &answer, sizeof answer);
}

// Nobody waits for it any more.
void Launcher::drop_captures_of(std::uint64_t client) {
  for (auto& [id, sandbox] : sandboxes_)
    if (sandbox.capture && sandbox.capture->to.client == client) stop_capture(sandbox);
}

// A launcher before us froze it for a snapshot and did not come to thaw it.
void Launcher::thaw_adopted(Sandbox& sandbox) {
  if (::unlink(frozen_mark(sandbox.id).c_str()) != 0) return;
  if (auto thawed = groups_.freeze(sandbox.berth.group.name, false); !thawed)
    log::error("adopted sandbox not thawed", {{"id", sandbox.id}, {"error", thawed.error().what()}});
}

}  // namespace osb::launch
