// Questions to the host. Each is answered by trying the thing in a child process, not by reading a version.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cli/doctor/finding.h"
#include "daemon/config.h"

namespace osb::cli {

std::vector<Finding> probe_privileges();                          // root, capabilities, kernel version
std::vector<Finding> probe_namespaces();                          // each kind, and how many user namespaces there may be
std::vector<Finding> probe_cgroups();                             // hierarchies, controllers, kill and freeze
std::vector<Finding> probe_mounts(const std::string& state_dir);  // mount API, overlay, id-mapped mounts
std::vector<Finding> probe_confinement();                         // seccomp, Landlock, sealed programs
std::vector<Finding> probe_host(const std::string& state_dir);    // disk, loop devices, ids, programs, sysctls
std::vector<Finding> probe_process(bool required);                // the runtime process, and what it does not isolate
std::vector<Finding> probe_daemon(const daemon::Config& config);  // serve and launch, if they run

// Runs `probe` in a forked child and returns what it returned: 0, or an errno. A child that dies counts as EPERM.
int errno_in_child(const std::function<int()>& probe);

// First line of a small kernel file; "" when it cannot be read.
std::string first_line(const std::string& path);

}  // namespace osb::cli
