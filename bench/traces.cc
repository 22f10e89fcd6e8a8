#include "traces.h"

#include <unistd.h>

#include <map>
#include <set>

#include "machine.h"

namespace bench {
namespace {

std::size_t groups_of(const std::string& instance) {
  std::size_t count = 0;
  std::error_code ignored;
  std::string name = "opensandbox-" + instance;
  std::vector<fs::path> places = {"/sys/fs/cgroup/" + name};
  for (const auto& hierarchy : names_in("/sys/fs/cgroup"))
    if (fs::path place = "/sys/fs/cgroup/" + hierarchy; !fs::is_symlink(place, ignored)) places.push_back(place / name);
  for (const auto& place : places) {
    count += fs::is_directory(place, ignored);
    for (const auto& entry : names_in(place)) count += fs::is_directory(place / entry, ignored);
  }
  return count;
}

std::vector<pid_t> descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& name : process_ids()) {
    pid_t pid = std::stoi(name);
    std::string stat = read_file("/proc/" + name + "/stat");
    auto close = stat.rfind(')');
    if (close != std::string::npos && close + 4 < stat.size()) children.emplace(std::atoi(stat.c_str() + close + 4), pid);
  }
  std::vector<pid_t> out;
  for (std::vector<pid_t> next = {root}; !next.empty();) {
    pid_t parent = next.back();
    next.pop_back();
    for (auto [at, end] = children.equal_range(parent); at != end; ++at) {
      out.push_back(at->second);
      next.push_back(at->second);
    }
  }
  return out;
}

std::size_t sockets_in(const fs::path& folder) {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto& name : names_in(folder)) {
    auto type = fs::symlink_status(folder / name, ignored).type();
    count += type == fs::file_type::socket ? 1 : type == fs::file_type::directory ? sockets_in(folder / name) : 0;
  }
  return count;
}

std::string link_text(const std::string& path) {
  char text[128];
  ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "";
}

}  // namespace

bool Traces::more_than(const Traces& other) const {
  return children.size() > other.children.size() || groups > other.groups || namespaces > other.namespaces || sockets > other.sockets ||
         loops > other.loops;
}

std::string Traces::compared_with(const Traces& other) const {
  auto part = [](const char* name, std::size_t now, std::size_t before) {
    return now > before ? std::string(name) + " " + std::to_string(now) + " (before: " + std::to_string(before) + ") " : std::string();
  };
  return "still there: " + part("processes", children.size(), other.children.size()) + part("cgroups", groups, other.groups) +
         part("network namespaces", namespaces, other.namespaces) + part("sockets", sockets, other.sockets) +
         part("loop devices", loops, other.loops);
}

Traces traces_of(const Daemon& daemon) {
  Traces out;
  std::error_code ignored;
  out.children = descendants(daemon.launcher());
  std::set<std::string> spaces;
  for (pid_t pid : out.children) spaces.insert(link_text("/proc/" + std::to_string(pid) + "/ns/net"));
  out.namespaces = spaces.size();
  out.groups = groups_of(daemon.instance());
  out.sockets = sockets_in(fs::path(daemon.socket()).parent_path());
  for (const auto& name : names_in("/sys/block")) out.loops += fs::exists("/sys/block/" + name + "/loop/backing_file", ignored);
  return out;
}

std::size_t left_of(const std::string& instance) {
  std::size_t count = groups_of(instance) + fs::exists("/run/opensandbox/" + instance);
  for (const auto& pid : process_ids()) count += read_file("/proc/" + pid + "/cmdline").find('\0' + instance + '\0') != std::string::npos;
  return count;
}

}  // namespace bench
