#include "execd/metrics/processes.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "execd/small_file.h"

namespace osb::execd::metrics {
namespace {

constexpr std::size_t kCommandBytes = 512;
constexpr std::size_t kBetweenTurns = 32;  // processes read before others get their turn

std::vector<int> list_pids() {
  std::vector<int> pids;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return pids;
  while (const dirent* entry = ::readdir(proc))
    if (auto pid = parse_int<int>(entry->d_name)) pids.push_back(*pid);
  ::closedir(proc);
  std::sort(pids.begin(), pids.end());
  return pids;
}

// What was typed, with spaces between the words; the name in brackets for a process without words (a zombie).
std::string command_of(const std::string& directory, std::string_view name) {
  auto words = read_small_file(directory + "/cmdline", kCommandBytes);
  if (!words || words->empty()) return cat("[", name, "]");
  while (!words->empty() && words->back() == '\0') words->pop_back();
  std::replace(words->begin(), words->end(), '\0', ' ');
  return *std::move(words);
}

// "pid (name) state ppid ..."; the name may hold anything, so the fields are counted from its last ')'.
void append_process(std::string& out, int pid) {
  auto directory = cat("/proc/", pid);
  auto stat = read_small_file(directory + "/stat", 4096);
  struct stat owner{};
  if (!stat || ::stat(directory.c_str(), &owner) != 0) return;
  auto open = stat->find('(');
  auto close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  auto fields = split(std::string_view(*stat).substr(close + 1), ' ');  // [1] is the state
  if (fields.size() < 23) return;
  auto number = [&](std::size_t at) { return parse_int<std::uint64_t>(fields[at]).value_or(0); };
  auto tick_millis = 1000 / static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
  auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (out.back() != '[') out += ',';
  out +=
      cat("{\"pid\":", pid, ",\"parent\":", number(2), ",\"state\":", json_string(fields[1]), ",\"user\":", owner.st_uid,
          ",\"threads\":", number(18), ",\"cpuMillis\":", (number(12) + number(13)) * tick_millis, ",\"memoryBytes\":", number(22) * page,
          ",\"command\":", json_string(command_of(directory, std::string_view(*stat).substr(open + 1, close - open - 1))), "}");
}

}  // namespace

Task<std::string> processes_json() {
  auto pids = list_pids();
  bool truncated = pids.size() > kMostProcesses;
  if (truncated) pids.erase(pids.begin(), pids.end() - kMostProcesses);  // the newest are what somebody looks for
  std::string out = "{\"processes\":[";
  for (std::size_t i = 0; i < pids.size(); ++i) {
    if (i % kBetweenTurns == kBetweenTurns - 1) co_await yield_now();
    append_process(out, pids[i]);
  }
  out += cat("],\"truncated\":", truncated, "}");
  co_return out;
}

}  // namespace osb::execd::metrics
