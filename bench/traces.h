// What sandboxes of an instance leave in the kernel while they are there, counted from outside.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "daemon.h"

namespace bench {

struct Traces {
  std::vector<pid_t> children;  // everything below the launcher
  std::size_t groups = 0;       // cgroup directories of the instance: its own and those of its sandboxes
  std::size_t namespaces = 0;   // distinct network namespaces of those processes
  std::size_t sockets = 0;      // in the instance's run directory
  std::size_t loops = 0;        // loop devices of the host that are in use

  bool more_than(const Traces& other) const;
  std::string compared_with(const Traces& other) const;
};

Traces traces_of(const Daemon& daemon);
// Processes, cgroups and folders that still carry the instance's name.
std::size_t left_of(const std::string& instance);

}  // namespace bench
