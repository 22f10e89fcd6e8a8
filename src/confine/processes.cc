#include "confine/processes.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "sys/kernel_file.h"

namespace osb::confine {
namespace {

// Fields of /proc/<pid>/stat behind the name in parentheses, which may hold anything: 11 and 12 are the process's own time, 13 and 14
// that of the children it has waited for, 17 its threads, 21 its resident pages.
bool read_stat(ProcessUse& use) {
  auto stat = sys::read_file(cat("/proc/", use.pid, "/stat"), 4096);
  auto behind = stat ? stat->rfind(')') : std::string::npos;
  if (behind == std::string::npos) return false;
  auto fields = split(std::string_view(*stat).substr(behind + 2), ' ');
  if (fields.size() < 22) return false;
  auto number = [&](std::size_t i) { return parse_int<std::uint64_t>(fields[i]).value_or(0); };
  static const auto kTick = static_cast<std::uint64_t>(1'000'000'000 / ::sysconf(_SC_CLK_TCK));
  static const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  use.tasks = number(17);
  use.resident_bytes = number(21) * kPage;
  use.cpu_nanos = (number(11) + number(12) + number(13) + number(14)) * kTick;
  return true;
}

}  // namespace

std::string pid_namespace_of(std::int32_t pid) {
  char text[64];
  auto n = ::readlink(cat("/proc/", pid, "/ns/pid").c_str(), text, sizeof text);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string();
}

std::vector<std::vector<ProcessUse>> processes_in(const std::vector<std::string>& namespaces) {
  std::vector<std::vector<ProcessUse>> found(namespaces.size());
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr) return found;
  while (auto* entry = ::readdir(dir)) {
    auto pid = parse_int<std::int32_t>(entry->d_name);
    auto at = pid ? std::ranges::find(namespaces, pid_namespace_of(*pid)) : namespaces.end();
    if (at == namespaces.end() || at->empty()) continue;
    ProcessUse use{.pid = *pid};
    if (read_stat(use)) found[static_cast<std::size_t>(at - namespaces.begin())].push_back(use);
  }
  ::closedir(dir);
  return found;
}

bool has_children(std::int32_t pid) {
  auto children = sys::read_file(cat("/proc/", pid, "/task/", pid, "/children"), 4096);
  return !children || !children->empty();
}

std::uint64_t own_bytes_of(std::int32_t pid) {
  auto text = sys::read_file(cat("/proc/", pid, "/smaps_rollup"), 8192);
  if (!text) return 0;
  std::uint64_t kib = 0;
  for (auto line : split(*text, '\n')) {
    if (!line.starts_with("Pss_Anon:") && !line.starts_with("Pss_Shmem:")) continue;
    auto words = trim(line.substr(line.find(':') + 1));
    kib += parse_int<std::uint64_t>(words.substr(0, words.find(' '))).value_or(0);
  }
  return kib * 1024;
}

}  // namespace osb::confine
