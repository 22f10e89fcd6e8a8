// The cgroup hierarchies of this host, as they are mounted.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace osb::cli {

struct HostCgroups {
  std::string v2;  // mount point, or empty
  std::vector<std::string> v2_controllers;
  std::vector<std::pair<std::string, std::string>> v1;  // controller, mount point; several may share a mount

  bool uses_v1() const { return has_v1("memory"); }  // where the limits live
  bool has_v1(const std::string& controller) const;
  bool has_v2(const std::string& controller) const;
};

HostCgroups find_host_cgroups();

}  // namespace osb::cli
