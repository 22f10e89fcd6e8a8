#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "cli/doctor/host_cgroups.h"
#include "cli/doctor/leaks.h"
#include "model/ledger_record.h"
#include "sys/fs_walk.h"
#include "sys/kernel_file.h"

namespace osb::cli {
namespace {

constexpr std::string_view kGroupPrefix = "opensandbox-";

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool is_locked(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void gather_ledger(Snapshot& out, const std::string& run_dir, const std::string& instance) {
  auto text = sys::read_file(cat(run_dir, "/ledger"), 8 << 20);
  if (!text) return;
  for (auto& record : parse_ledger(*text)) out.records.push_back({instance, std::move(record.id), record.range});
}

void gather_records(Snapshot& out, const LeakPlaces& places) {
  for (const auto& name : sys::fs::names_in(places.run_root))
    if (name != "ranges") gather_ledger(out, cat(places.run_root, "/", name), name);
}

void gather_instances(Snapshot& out, const LeakPlaces& places) {
  for (const auto& name : sys::fs::names_in(places.run_root)) {
    auto run_dir = cat(places.run_root, "/", name);
    struct stat info{};
    if (name == "ranges" || ::lstat(run_dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    Snapshot::Instance instance{name, exists(cat(run_dir, "/private")) || exists(cat(run_dir, "/.private-instance")), false};
    instance.is_alive = is_locked(cat(run_dir, "/lock")) || is_locked(cat(run_dir, "/serve.pid"));
    out.instances.push_back(std::move(instance));
    for (const auto& socket : sys::fs::names_in(cat(run_dir, "/sandboxes")))
      out.sockets.push_back({name, socket.substr(0, socket.find('.')), cat(run_dir, "/sandboxes/", socket)});
  }
  for (const auto& number : sys::fs::names_in(cat(places.run_root, "/ranges"))) {
    auto text = sys::read_file(cat(places.run_root, "/ranges/", number), 256);
    if (!text) continue;
    auto owner = std::string_view(*text).substr(0, text->find_first_of(" \n"));
    out.blocks.push_back({number, std::string(owner)});
  }
}

void gather_groups(Snapshot& out, const std::string& hierarchy) {
  for (const auto& name : sys::fs::names_in(hierarchy)) {
    if (!name.starts_with(kGroupPrefix)) continue;
    auto instance = name.substr(kGroupPrefix.size());
    if (instance.starts_with("doctor-")) continue;  // another doctor's probe
    out.groups.push_back({hierarchy, instance, {}});
    for (const auto& berth : sys::fs::names_in(cat(hierarchy, "/", name))) {
      auto inside = sys::read_file(cat(hierarchy, "/", name, "/", berth, "/cgroup.procs"), 1 << 20);
      if (inside) out.groups.push_back({hierarchy, instance, berth, !inside->empty()});  // files and what is just gone have none
    }
  }
}

void gather_all_groups(Snapshot& out) {
  auto host = find_host_cgroups();
  std::set<std::string> places;
  for (const auto& [controller, point] : host.v1) places.insert(point);
  if (!host.v2.empty()) places.insert(host.v2);
  for (const auto& place : places) gather_groups(out, place);
}

// "12:memory:/opensandbox-default/berth-3": the line that names a sandbox wins over one that names only the instance.
void read_place(Snapshot::Process& process, std::string_view cgroup) {
  for (auto line : split(cgroup, '\n')) {
    auto at = line.find(cat("/", kGroupPrefix));
    if (at == line.npos) continue;
    auto parts = split(line.substr(at + 1 + kGroupPrefix.size()), '/');
    process.instance = parts[0];
    if (parts.size() > 1) process.berth = parts[1];
    if (!process.berth.empty()) return;
  }
}

// A first process that was made ahead of time is what its launcher is until it gets a sandbox.
bool waits_for_sandbox(const Snapshot::Process& process, std::string_view parent) {
  if (process.berth.empty() || process.uid != 0) return false;
  auto name = sys::read_file(cat("/proc/", parent, "/comm"), 64);
  return name && *name == "opensandbox-lau\n";  // the kernel keeps 15 letters
}

void gather_processes(Snapshot& out) {
  for (const auto& name : sys::fs::names_in("/proc")) {
    auto pid = parse_int<std::int32_t>(name);
    if (!pid) continue;
    auto status = sys::read_file(cat("/proc/", name, "/status"), 64 * 1024);
    auto cgroup = sys::read_file(cat("/proc/", name, "/cgroup"), 64 * 1024);
    if (!status || !cgroup) continue;  // it ended while we looked
    Snapshot::Process process;
    process.pid = *pid;
    std::string_view parent;
    for (auto line : split(*status, '\n')) {
      if (line.starts_with("Name:")) process.name = trim(line.substr(5));
      if (line.starts_with("PPid:")) parent = trim(line.substr(5));
      if (line.starts_with("Uid:")) process.uid = parse_int<std::uint32_t>(split(trim(line.substr(4)), '\t')[0]).value_or(0);
    }
    read_place(process, *cgroup);
    process.waits = waits_for_sandbox(process, parent);
    bool ours = !process.berth.empty() || (process.uid >= kFirstSandboxUid && process.uid < kPastSandboxUids);
    if (ours) out.processes.push_back(std::move(process));
  }
}

// The launcher mounts in a namespace of its own; in the host's there is nothing of ours but what an operator put there:
// a file system for the run root or the state directory as a whole.
void gather_mounts(Snapshot& out, const LeakPlaces& places) {
  auto table = sys::read_file("/proc/1/mounts", 4 << 20);
  if (!table) table = sys::read_file("/proc/self/mounts", 4 << 20);
  if (!table) return;
  for (auto line : split(*table, '\n')) {
    auto words = split(line, ' ');
    if (words.size() < 2) continue;
    bool below = words[1].starts_with(cat(places.run_root, "/")) || words[1].starts_with(cat(places.state_dir, "/"));
    if (below || words[0] == "opensandbox") out.mounts.emplace_back(words[1]);
  }
}

void gather_disks(Snapshot& out, const LeakPlaces& places) {
  auto disks = cat(places.state_dir, "/disks");
  for (const auto& name : sys::fs::names_in(disks))
    if (name.ends_with(".img")) out.disks.push_back({name.substr(0, name.size() - 4), cat(disks, "/", name)});
  for (const auto& device : sys::fs::names_in("/sys/block")) {
    if (!device.starts_with("loop")) continue;
    auto backing = sys::read_file(cat("/sys/block/", device, "/loop/backing_file"), 4096);
    if (backing && backing->starts_with(cat(places.state_dir, "/")) && backing->contains("/disks/"))
      out.loops.push_back({cat("/dev/", device), std::string(split(*backing, '\n')[0])});
  }
  out.private_states = sys::fs::names_in(cat(places.state_dir, "/private"));
}

}  // namespace

Result<Snapshot> gather(const LeakPlaces& places) {
  if (::geteuid() != 0) return Error(Errc::permission_denied, "only root sees the whole host").with_hint("sudo opensandbox doctor --leaks");
  Snapshot out;
  // Ledgers are read before and after everything else: a sandbox that begins or ends meanwhile is in one of the two.
  gather_records(out, places);
  gather_processes(out);
  gather_all_groups(out);
  gather_mounts(out, places);
  gather_disks(out, places);
  gather_instances(out, places);
  gather_records(out, places);
  return out;
}

}  // namespace osb::cli
