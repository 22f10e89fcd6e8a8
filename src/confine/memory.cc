// The memory of a sandbox as a whole. Each of its processes has a limit of its own that the kernel keeps; all of them together are
// looked at from time to time, and where they have more than the sandbox may, the largest is killed, as the kernel would in a group.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "confine/keeper.h"
#include "confine/processes.h"
#include "sys/kernel_file.h"
#include "sys/raw.h"

namespace osb::confine {
namespace {

constexpr std::uint64_t kUsualLook = 1'000'000'000;
constexpr std::uint64_t kCloseLook = 100'000'000;  // while one has more than half of what it may

std::string counter_text(std::uint64_t kills) { return cat("oom_kill ", kills, "\n"); }

struct Weighed {
  std::uint64_t all = 0;
  std::int32_t largest = 0;  // never the first process
  std::uint64_t its_bytes = 0;
};

// Exact, and costs a walk over the memory of each: only where the sum of the resident pages says that there may be too much.
Weighed weigh(const std::vector<ProcessUse>& processes, std::int32_t init) {
  Weighed out;
  for (const auto& process : processes) {
    auto bytes = own_bytes_of(process.pid);
    out.all += bytes;
    if (process.pid != init && bytes > out.its_bytes) {
      out.largest = process.pid;
      out.its_bytes = bytes;
    }
  }
  return out;
}

// The number may be another process's by now: what was opened is looked at before it is killed.
bool kill_in(std::int32_t pid, const std::string& pid_namespace) {
  Fd process(sys::raw::pidfd_open(pid));
  return process && pid_namespace_of(pid) == pid_namespace && sys::raw::pidfd_send_signal(process.get(), SIGKILL) == 0;
}

}  // namespace

// What execd reads to tell an end for lack of memory from any other; read-only there.
Result<> Keeper::open_oom_counter(Sandbox& sandbox) {
  sandbox.oom_counter = Fd(::memfd_create("oom", MFD_CLOEXEC));
  if (!sandbox.oom_counter) return Error::from_errno("memfd_create", errno);
  auto text = counter_text(0);
  if (::pwrite(sandbox.oom_counter.get(), text.data(), text.size(), 0) < 0) return Error::from_errno("write counter", errno);
  return Ok{};
}

void Keeper::note_oom_kill(Sandbox& sandbox) {
  auto text = counter_text(++sandbox.oom_kills);
  if (::pwrite(sandbox.oom_counter.get(), text.data(), text.size(), 0) < 0) log::error("counter not written", {{"id", sandbox.id}});
  log::info("out of memory", {{"id", sandbox.id}, {"kills", sandbox.oom_kills}});
}

void Keeper::look_at_memory(std::uint64_t now) {
  if (now < next_look_) return;
  next_look_ = now + kUsualLook;
  std::vector<Sandbox*> busy;
  std::vector<std::string> namespaces;
  for (auto& [id, sandbox] : sandboxes_) {
    if (sandbox.phase != Phase::live || !has_children(sandbox.pid)) continue;
    busy.push_back(&sandbox);
    namespaces.push_back(pid_namespace_of(sandbox.pid));
  }
  if (busy.empty()) return;
  auto all = processes_in(namespaces);
  for (std::size_t i = 0; i < busy.size(); ++i) {
    std::uint64_t resident = 0;
    for (const auto& process : all[i]) resident += process.resident_bytes;
    auto limit = busy[i]->limits.memory_bytes;
    if (resident > limit / 2) next_look_ = now + kCloseLook;
    if (resident <= limit) continue;
    auto exact = weigh(all[i], busy[i]->pid);
    if (exact.all > limit && exact.largest != 0 && kill_in(exact.largest, namespaces[i])) note_oom_kill(*busy[i]);
  }
}

}  // namespace osb::confine
