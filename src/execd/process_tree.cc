#include "execd/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "sys/raw.h"

namespace osb::execd {
namespace {

constexpr int kMaxRounds = 32;
constexpr std::uint64_t kMaxTag = 1u << 30;

struct Entry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::uint64_t started = 0;  // with the pid this names a process for good
};

// Calls visit(pid, directory descriptor of /proc) for every process but execd itself.
template <class Visit>
void for_each_process(Visit visit) {
  std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return;
  int fd = ::dirfd(proc.get());
  while (const dirent* entry = ::readdir(proc.get())) {
    auto pid = parse_int<pid_t>(entry->d_name);
    if (pid && *pid > 0 && *pid != ::getpid()) visit(*pid, fd);
  }
}

std::string_view read_entry(int proc, pid_t pid, const char* name, std::span<char> into) {
  char path[48];
  std::snprintf(path, sizeof path, "%d/%s", pid, name);
  Fd file(::openat(proc, path, O_RDONLY | O_CLOEXEC));
  ssize_t n = file ? ::read(file.get(), into.data(), into.size()) : -1;
  return {into.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

// "pid (name) state ppid pgrp session ..."; the name may hold anything, so the fields are counted from its last ')'.
std::optional<Entry> read_stat(int proc, pid_t pid) {
  std::array<char, 1024> buffer;
  std::string_view text = read_entry(proc, pid, "stat", buffer);
  auto close = text.rfind(')');
  if (close == std::string_view::npos) return std::nullopt;
  auto fields = split(text.substr(close + 1), ' ');  // [1] is the state
  if (fields.size() < 21 || fields[1] == "Z" || fields[1] == "X") return std::nullopt;
  return Entry{.pid = pid,
               .parent = parse_int<pid_t>(fields[2]).value_or(0),
               .group = parse_int<pid_t>(fields[3]).value_or(0),
               .session = parse_int<pid_t>(fields[4]).value_or(0),
               .started = parse_int<std::uint64_t>(fields[20]).value_or(0)};
}

std::uint64_t read_tag(int proc, pid_t pid) {
  std::array<char, 4096> buffer;
  std::string_view text = read_entry(proc, pid, "limits", buffer);
  auto at = text.find("Max file locks");
  if (at == std::string_view::npos) return 0;
  std::string_view line = text.substr(at + 14, text.find('\n', at) - at - 14);
  std::string_view hard;
  int column = 0;
  for (std::string_view word : split(line, ' '))
    if (!word.empty() && ++column == 2) hard = word;
  return parse_int<std::uint64_t>(hard).value_or(0);
}

class Hunt {
 public:
  explicit Hunt(const TreeRoot& root) : root_(root) {}

  // One look at all processes; stops those that are new. True when there was one.
  bool round() {
    bool found = false;
    for_each_process([&](pid_t pid, int proc) {
      auto entry = read_stat(proc, pid);
      if (!entry || known(*entry) || !belongs(*entry, proc)) return;
      found = true;
      members_.push_back(*entry);
      signal(*entry, proc, SIGSTOP);
    });
    return found;
  }

  std::size_t kill_all() {
    Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const Entry& entry : members_) signal(entry, proc.get(), SIGKILL);
    return members_.size();
  }

 private:
  bool known(const Entry& entry) const {
    return std::any_of(members_.begin(), members_.end(), [&](const Entry& m) { return m.pid == entry.pid && m.started == entry.started; });
  }
  bool belongs(const Entry& entry, int proc) const {
    if (entry.pid == root_.leader || entry.group == root_.leader || entry.session == root_.leader) return true;
    if (std::any_of(members_.begin(), members_.end(), [&](const Entry& m) { return m.pid == entry.parent; })) return true;
    // Orphans come to execd; whoever has another parent is found through that one.
    return root_.tag != 0 && entry.parent == ::getpid() && read_tag(proc, entry.pid) == root_.tag;
  }
  // Through a descriptor, and only when the number still names the same process.
  static void signal(const Entry& entry, int proc, int number) {
    Fd process(sys::raw::pidfd_open(entry.pid));
    auto now = read_stat(proc, entry.pid);
    if (process && now && now->started == entry.started) sys::raw::pidfd_send_signal(process.get(), number);
  }

  TreeRoot root_;
  std::vector<Entry> members_;
};

}  // namespace

std::size_t kill_tree(const TreeRoot& root) {
  Hunt hunt(root);
  for (int i = 0; i < kMaxRounds; ++i)
    if (!hunt.round()) break;
  return hunt.kill_all();
}

std::vector<Fd> children_in_group_of(pid_t leader) {
  std::vector<Fd> found;
  for_each_process([&](pid_t pid, int proc) {
    auto entry = read_stat(proc, pid);
    if (!entry || entry->parent != leader || entry->group != leader) return;
    Fd process(sys::raw::pidfd_open(pid));
    auto now = read_stat(proc, pid);  // the number still names the same one
    if (process && now && now->started == entry->started) found.push_back(std::move(process));
  });
  return found;
}

Tags::Tags() {
  rlimit own{};
  bool known = ::getrlimit(RLIMIT_LOCKS, &own) == 0;
  limit_ = known ? std::min<std::uint64_t>(own.rlim_max, kMaxTag) : 0;
}

// At the start of a lap the tags of living processes are noted. Tags only grow within a lap, so whoever carries one
// that is still to come was alive at that moment, or descends from one who was.
void Tags::start_lap() {
  last_ = first_;
  taken_.clear();
  for_each_process([&](pid_t pid, int proc) { taken_.insert(read_tag(proc, pid)); });
}

std::uint64_t Tags::next() {
  if (limit_ <= first_) return 0;
  for (std::uint64_t tries = first_; tries < limit_; ++tries) {
    if (++last_ >= limit_) start_lap();
    if (!taken_.contains(last_)) return last_;
  }
  return 0;
}

}  // namespace osb::execd
