#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>

#include "base/text.h"
#include "cli/doctor/probes.h"
#include "cli/units.h"
#include "sys/fs_open.h"
#include "sys/kernel_file.h"

namespace osb::cli {
namespace {

constexpr const char* kPart = "Host";
constexpr std::uint64_t kFirstId = 0x40000000, kPastLastId = 0x80000000;
constexpr std::uint64_t kLittleSpace = 1ull << 30;

Finding disk(const std::string& state_dir) {
  auto path = state_dir;
  while (path.size() > 1 && ::access(path.c_str(), F_OK) != 0) path = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
  auto dir = sys::fs::open_directory(path);
  auto space = dir ? sys::fs::space_of(dir->get()) : Result<sys::fs::Space>(dir.error());
  if (!space)
    return {kPart, "disk space", Verdict::weak, false, cat("cannot look at ", path, ": ", space.error().what()), cat("ls -ld ", path)};
  auto free = cat(format_bytes(space->free_bytes), " free below ", path);
  if (space->free_bytes < kLittleSpace)
    return {kPart, "disk space", Verdict::weak, false, free, cat("make room, or move storage.state_dir")};
  return {kPart, "disk space", Verdict::ok, false, free, {}};
}

// Every sandbox has a socket there. On a disk each costs a tenth of a millisecond, and more the more of them come and go.
Finding run_root() {
  constexpr const char* kName = "run directory";
  struct statfs info{};
  bool known = ::statfs("/run/opensandbox", &info) == 0 || ::statfs("/run", &info) == 0;
  if (known && info.f_type == TMPFS_MAGIC) return {kPart, kName, Verdict::ok, false, "in memory", {}};
  return {kPart,
          kName,
          Verdict::weak,
          false,
          "/run/opensandbox lies on a disk: creates are slower than they need be",
          "mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs /run/opensandbox (before the daemon starts)"};
}

Finding loop_devices() {
  bool there = ::access("/dev/loop-control", R_OK | W_OK) == 0;
  if (there) return {kPart, "loop devices", Verdict::ok, false, "sandboxes may have disks larger than 256 MiB", {}};
  return {kPart, "loop devices", Verdict::weak, false, "no disk of a sandbox can be larger than 256 MiB", "modprobe loop"};
}

std::string on_path(const char* program) {
  for (auto dir : {"/usr/local/sbin/", "/usr/sbin/", "/sbin/", "/usr/local/bin/", "/usr/bin/", "/bin/"})
    if (::access(cat(dir, program).c_str(), X_OK) == 0) return cat(dir, program);
  return {};
}

Finding program(const char* name, const char* means, const char* package) {
  auto path = on_path(name);
  if (!path.empty()) return {kPart, name, Verdict::ok, false, path, {}};
  return {kPart, name, Verdict::weak, false, means, cat("apt-get install ", package)};
}

// "name:first:count" lines that hand out ids sandboxes use; the first one found.
std::string overlap_in(const char* path) {
  auto text = sys::read_file(path, 1 << 20);
  if (!text) return {};
  for (auto line : split(*text, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    auto first = parse_int<std::uint64_t>(fields[1]), count = parse_int<std::uint64_t>(fields[2]);
    if (first && count && *first < kPastLastId && *first + *count > kFirstId) return cat(path, ": ", line);
  }
  return {};
}

std::string account_in_range() {
  auto text = sys::read_file("/etc/passwd", 1 << 20);
  if (!text) return {};
  for (auto line : split(*text, '\n')) {
    auto fields = split(line, ':');
    auto uid = fields.size() > 2 ? parse_int<std::uint64_t>(fields[2]) : std::nullopt;
    if (uid && *uid >= kFirstId && *uid < kPastLastId) return cat("/etc/passwd: ", fields[0]);
  }
  return {};
}

Finding id_ranges() {
  std::string found = overlap_in("/etc/subuid");
  if (found.empty()) found = overlap_in("/etc/subgid");
  if (found.empty()) found = account_in_range();
  if (found.empty()) return {kPart, "host ids", Verdict::ok, false, "1073741824 to 2147483647 are used by nobody else", {}};
  return {kPart, "host ids", Verdict::weak, false, cat("somebody else has ids of sandboxes: ", found), "move that range below 1073741824"};
}

}  // namespace

std::vector<Finding> probe_host(const std::string& state_dir) {
  return {disk(state_dir),
          run_root(),
          loop_devices(),
          program("mkfs.ext4", "no disk of a sandbox can be larger than 256 MiB", "e2fsprogs"),
          program("bash", "commands of SDKs use sh instead", "bash"),
          program("python3", "the host image has no Python", "python3"),
          id_ranges()};
}

}  // namespace osb::cli
