// What a sandbox can leave on the host, gathered from the kernel alone, so that "nothing is left" is an equality.
#pragma once
#include <dirent.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "base/text.h"
#include "model/ledger_record.h"

namespace osb::test {

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Every cgroup directory of this instance in every hierarchy.
inline std::set<std::string> cgroups_of(const std::string& instance) {
  std::set<std::string> found;
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    auto words = split(line, ' ');
    if (words.size() < 3 || !words[2].starts_with("cgroup")) continue;
    std::string parent = cat(words[1], "/opensandbox-", instance);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(parent, ignored))
      if (entry.is_directory()) found.insert(entry.path());
  }
  return found;
}

// Processes in a group of this instance. Other instances may live on the same machine.
inline std::set<int> processes_of(const std::string& instance) {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    auto pid = parse_int<int>(entry.path().filename().string());
    if (pid && read_text(cat("/proc/", *pid, "/cgroup")).contains(cat("/opensandbox-", instance, "/"))) found.insert(*pid);
  }
  return found;
}

inline std::set<std::string> entries_of(const std::string& directory) {
  std::set<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) found.insert(entry.path().filename());
  return found;
}

inline std::set<std::string> ledger_of(const std::string& run_dir) {
  std::set<std::string> ids;
  for (const auto& record : parse_ledger(read_text(run_dir + "/ledger"))) ids.insert(record.id);
  return ids;
}

inline std::size_t open_descriptors_of(int pid) { return entries_of(cat("/proc/", pid, "/fd")).size(); }
// Mounts of ours in the host's mount namespace; others come and go on a busy machine.
inline std::set<std::string> host_mounts() {
  std::set<std::string> found;
  std::ifstream table("/proc/self/mountinfo");
  for (std::string line; std::getline(table, line);)
    if (line.contains("opensandbox")) found.insert(line);
  return found;
}

// The objects of one instance, without its launcher's own.
struct Traces {
  std::set<std::string> cgroups;
  std::set<std::string> ledger;
  std::set<std::string> sockets;
  std::set<int> processes;
  std::set<std::string> mounts;
  bool operator==(const Traces&) const = default;
};

inline Traces traces_of(const std::string& instance) {
  std::string run = "/run/opensandbox/" + instance;
  return {cgroups_of(instance), ledger_of(run), entries_of(run + "/sandboxes"), processes_of(instance), host_mounts()};
}

}  // namespace osb::test
