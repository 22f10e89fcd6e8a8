#include "launch/shape.h"

#include "base/text.h"

namespace osb::launch {
namespace {

unsigned whole_cpus(const Limits& limits) { return (limits.cpu_millis + 999) / 1000; }

std::string cpu_list(const Limits& limits) {
  unsigned cpus = whole_cpus(limits);
  return cpus <= 1 ? "0\n" : cat("0-", cpus - 1, "\n");
}

std::string cpuinfo(const Limits& limits) {
  std::string text;
  for (unsigned i = 0; i < whole_cpus(limits); ++i)
    text += cat("processor\t: ", i,
                "\nvendor_id\t: sandbox\nmodel name\t: sandbox\ncpu MHz\t\t: 1000.000\ncpu cores\t: ", whole_cpus(limits), "\n\n");
  return text;
}

std::string meminfo(const Limits& limits) {
  auto kib = limits.memory_bytes / 1024;
  return cat("MemTotal:       ", kib, " kB\nMemFree:        ", kib, " kB\nMemAvailable:   ", kib,
             " kB\nBuffers:        0 kB\nCached:         0 kB\nSwapCached:     0 kB\nSwapTotal:      0 kB\nSwapFree:       0 kB\nShmem:    "
             "      0 kB\n");
}

std::string stat(const Limits& limits) {
  std::string text = "cpu  0 0 0 0 0 0 0 0 0 0\n";
  for (unsigned i = 0; i < whole_cpus(limits); ++i) text += cat("cpu", i, " 0 0 0 0 0 0 0 0 0 0\n");
  return text + "intr 0\nctxt 0\nbtime 0\nprocesses 0\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n";
}

}  // namespace

std::vector<TextFile> proc_files(const Limits& limits) {
  return {
      {"cpuinfo", cpuinfo(limits)},
      {"meminfo", meminfo(limits)},
      {"stat", stat(limits)},
      {"loadavg", "0.00 0.00 0.00 1/1 1\n"},
      {"uptime", "1.00 1.00\n"},
      {"version", "Linux version (opensandbox)\n"},
      {"filesystems", "nodev\tproc\nnodev\ttmpfs\nnodev\toverlay\n"},
  };
}

std::vector<TextFile> sys_files(const Limits& limits) {
  return {
      {"devices/system/cpu/online", cpu_list(limits)},
      {"devices/system/cpu/possible", cpu_list(limits)},
      {"devices/system/cpu/present", cpu_list(limits)},
      {"kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
      {"kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n"},
      {"kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n"},
      {"fs/cgroup/cgroup.controllers", "cpu memory pids\n"},
      {"fs/cgroup/memory.max", cat(limits.memory_bytes, "\n")},
      {"fs/cgroup/memory.swap.max", "0\n"},
      {"fs/cgroup/cpu.max", cat(static_cast<std::uint64_t>(limits.cpu_millis) * 100, " 100000\n")},
      {"fs/cgroup/pids.max", cat(limits.pids, "\n")},
  };
}

std::vector<TextFile> etc_files() {
  return {
      {"hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"},
      {"resolv.conf", "# No name service: this sandbox has no network.\n"},
  };
}

const std::vector<const char*>& masked_proc_files() {
  static const std::vector<const char*> kFiles = {
      "buddyinfo",   "cgroups",      "cmdline",     "config.gz",   "consoles",      "crypto",   "devices",  "diskstats", "dma",
      "execdomains", "fb",           "interrupts",  "iomem",       "ioports",       "kallsyms", "kcore",    "key-users", "keys",
      "kmsg",        "kpagecgroup",  "kpagecount",  "kpageflags",  "latency_stats", "locks",    "mdstat",   "misc",      "modules",
      "mtrr",        "pagetypeinfo", "partitions",  "sched_debug", "schedstat",     "slabinfo", "softirqs", "swaps",     "sysrq-trigger",
      "timer_list",  "timer_stats",  "vmallocinfo", "vmstat",      "zoneinfo",
  };
  return kFiles;
}

const std::vector<const char*>& masked_proc_dirs() {
  static const std::vector<const char*> kDirs = {"acpi", "asound", "driver", "scsi", "pressure", "tty"};
  return kDirs;
}

}  // namespace osb::launch
