// What /proc says about this machine and about processes.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "process.h"

namespace bench {

std::string machine_name();  // cores, processor, kernel, memory, load
std::string versions(const fs::path& build);
std::string now_text();  // ISO 8601, UTC
int cores();
// Somebody else works now (0.4 s are looked at). Ours crosses several processes, the floor one: whoever else wants the processors is
// felt several times.
bool is_busy();

std::vector<std::string> process_ids();

struct ProcessLook {
  pid_t parent = -1;
  std::string name;
  double cpu_seconds = 0;
  long switches = 0;  // voluntary: how often it woke up
  double rss_kib = 0;
};
ProcessLook look_at(pid_t pid);  // parent -1: it is gone
double rss_mib(pid_t pid);
// `field` of /proc/PID/smaps_rollup in KiB ("Pss", "Private_Dirty"); -1 when it cannot be read.
double rollup_kib(pid_t pid, const std::string& field);

struct MachineCpu {
  double busy = 0, total = 0;  // seconds since boot, over all cores
};
MachineCpu machine_cpu();

// Bytes from /proc/meminfo that tell what many small kernel objects cost.
struct Memory {
  double available = 0, parts = 0;  // MiB; parts: anonymous + slab + page tables + kernel stacks + per-cpu + shmem
};
Memory memory();

}  // namespace bench
