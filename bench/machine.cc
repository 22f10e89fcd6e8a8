#include "machine.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "interrupt.h"

namespace bench {
namespace {

// "Name:   123 kB" in a file of such lines.
double field_kib(const std::string& text, const std::string& name) {
  std::string wanted = name + ":";
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) == std::string::npos ? text.size() : text.find('\n', at) + 1)
    if (text.compare(at, wanted.size(), wanted) == 0) return std::strtod(text.c_str() + at + wanted.size(), nullptr);
  return -1;
}

// Nanoseconds on a processor and voluntary switches, over all threads: ticks are too coarse for something that is idle.
void add_threads(const std::string& base, ProcessLook& look) {
  double nanos = 0;
  for (const auto& task : names_in(base + "/task")) {
    nanos += std::strtod(read_file(base + "/task/" + task + "/schedstat").c_str(), nullptr);
    std::string status = read_file(base + "/task/" + task + "/status");
    look.switches += static_cast<long>(field_kib(status, "voluntary_ctxt_switches"));
  }
  if (nanos > 0) look.cpu_seconds = nanos / 1e9;
}

double ticks_to_seconds(double ticks) { return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)); }

}  // namespace

int cores() { return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)); }

std::string machine_name() {
  utsname name{};
  ::uname(&name);
  std::string model = "unknown cpu", line;
  for (std::ifstream info("/proc/cpuinfo"); std::getline(info, line);)
    if (line.starts_with("model name")) model = line.substr(line.find(':') + 2);
  double gib = field_kib(read_file("/proc/meminfo"), "MemTotal") / 1024 / 1024;
  std::string groups = fs::exists("/sys/fs/cgroup/cgroup.controllers") ? "2" : "1";
  char memory[32];
  std::snprintf(memory, sizeof memory, "%.0f GiB", gib);
  return std::to_string(cores()) + " x " + model + ", " + memory + ", Linux " + name.release + ", cgroup version " + groups + ", load " +
         first_line(read_file("/proc/loadavg"));
}

std::string versions(const fs::path& build) {
  std::string out = first_line(capture({(build / "opensandbox").string(), "version"}).text);
  for (const char* peer : {"bwrap", "crun", "runc", "runsc", "docker"})
    if (on_path(peer)) out += "; " + first_line(capture({peer, "--version"}, true).text);
  return out;
}

std::string now_text() {
  char text[32];
  time_t now = ::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool is_busy() {
  MachineCpu before = machine_cpu();
  pause_ms(400);
  MachineCpu after = machine_cpu();
  return (after.busy - before.busy) > 0.2 * (after.total - before.total);
}

std::vector<std::string> process_ids() {
  auto out = names_in("/proc");
  std::erase_if(out, [](const std::string& name) { return name[0] < '1' || name[0] > '9'; });
  return out;
}

ProcessLook look_at(pid_t pid) {
  ProcessLook out;
  std::string base = "/proc/" + std::to_string(pid), stat = read_file(base + "/stat");
  auto open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return out;
  out.name = stat.substr(open + 1, close - open - 1);
  std::istringstream rest(stat.substr(close + 2));
  std::vector<std::string> fields;
  for (std::string word; rest >> word;) fields.push_back(word);
  if (fields.size() < 13) return out;
  out.parent = std::stoi(fields[1]);
  out.cpu_seconds = ticks_to_seconds(std::stod(fields[11]) + std::stod(fields[12]));
  out.rss_kib = field_kib(read_file(base + "/status"), "VmRSS");
  add_threads(base, out);
  return out;
}

double rss_mib(pid_t pid) { return look_at(pid).rss_kib / 1024; }

double rollup_kib(pid_t pid, const std::string& field) {
  return field_kib(read_file("/proc/" + std::to_string(pid) + "/smaps_rollup"), field);
}

MachineCpu machine_cpu() {
  std::istringstream in(first_line(read_file("/proc/stat")));
  std::string word;
  in >> word;
  MachineCpu out;
  double idle = 0;
  for (int index = 0; index < 8 && in >> word; ++index) {
    double seconds = ticks_to_seconds(std::stod(word));
    out.total += seconds;
    if (index == 3 || index == 4) idle += seconds;
  }
  out.busy = out.total - idle;
  return out;
}

Memory memory() {
  std::string text = read_file("/proc/meminfo");
  Memory out{.available = field_kib(text, "MemAvailable") / 1024};
  for (const char* name : {"AnonPages", "Slab", "PageTables", "KernelStack", "Percpu", "Shmem"}) out.parts += field_kib(text, name) / 1024;
  return out;
}

}  // namespace bench
