#include "runtime/host_room.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/text.h"
#include "sys/kernel_file.h"

namespace osb::runtime {
namespace {

constexpr std::size_t kProcBytes = 4096;

std::string read_proc(const char* path) {
  auto text = sys::read_file(path, kProcBytes);
  return text ? *std::move(text) : std::string();
}

// `file` is opened by the first who asks, and again while that fails.
std::string read_again(Fd& file, const char* path) {
  if (!file) file = Fd(::open(path, O_RDONLY | O_CLOEXEC));
  auto text = file ? sys::reread(file.get()) : Result<std::string>(std::string());
  return text ? *std::move(text) : std::string();
}

std::uint64_t number_in(std::string_view text) {
  return parse_int<std::uint64_t>(text.substr(0, text.find_first_of(" \n"))).value_or(HostRoom::kUnknown);
}

// "MemTotal:       24684000 kB"
std::uint64_t kilobytes_of(std::string_view text, std::string_view name) {
  auto at = text.find(name);
  if (at == text.npos) return HostRoom::kUnknown;
  auto number = number_in(trim(text.substr(at + name.size())));
  return number == HostRoom::kUnknown ? number : number * 1024;
}

// The kernel gives out the lowest number that is free, so nothing below it is.
std::uint64_t free_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return HostRoom::kUnknown;
  Fd lowest(::open("/", O_PATH | O_CLOEXEC));
  if (!lowest) return 0;
  auto used = static_cast<std::uint64_t>(lowest.get());
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

std::uint64_t free_disk(const std::string& directory) {
  struct statvfs disk{};
  if (directory.empty() || ::statvfs(directory.c_str(), &disk) != 0) return HostRoom::kUnknown;
  return static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
}

}  // namespace

void read_meminfo(std::string_view text, HostRoom& room) {
  room.memory_bytes = kilobytes_of(text, "MemTotal:");
  room.memory_available_bytes = kilobytes_of(text, "MemAvailable:");
}

std::uint64_t free_pids(std::string_view loadavg, std::string_view pid_max, std::string_view threads_max) {
  auto slash = loadavg.find('/');
  auto tasks = slash == loadavg.npos ? HostRoom::kUnknown : number_in(loadavg.substr(slash + 1));
  auto most = std::min(number_in(pid_max), number_in(threads_max));
  if (tasks == HostRoom::kUnknown || most == HostRoom::kUnknown) return HostRoom::kUnknown;
  return most > tasks ? most - tasks : 0;
}

HostRoom read_memory() {
  HostRoom room;
  read_meminfo(read_proc("/proc/meminfo"), room);
  return room;
}

HostRoomReader::HostRoomReader(std::string state_dir) : state_dir_(std::move(state_dir)) {}

HostRoom HostRoomReader::read() {
  HostRoom room;
  read_meminfo(read_again(meminfo_, "/proc/meminfo"), room);
  room.pids_free = free_pids(read_again(loadavg_, "/proc/loadavg"), read_again(pid_max_, "/proc/sys/kernel/pid_max"),
                             read_again(threads_max_, "/proc/sys/kernel/threads-max"));
  room.descriptors_free = free_descriptors();
  room.disk_free_bytes = free_disk(state_dir_);
  return room;
}

std::size_t usable_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT(&set)));
}

}  // namespace osb::runtime
