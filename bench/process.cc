#include "process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>

extern char** environ;

namespace bench {
namespace {

std::vector<char*> argv_of(const Words& words) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

}  // namespace

void die(const std::string& why) {
  std::cerr << "bench: " << why << "\n";
  std::exit(1);
}

double micros_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }
double seconds_since(Clock::time_point start) { return micros_since(start) / 1e6; }

std::string read_file(const fs::path& path) {
  std::string out;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char chunk[16384];
  for (ssize_t n; fd >= 0 && (n = ::read(fd, chunk, sizeof chunk)) > 0;) out.append(chunk, static_cast<std::size_t>(n));
  if (fd >= 0) ::close(fd);
  return out;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> out;
  DIR* open = ::opendir(folder.c_str());
  while (dirent* entry = open ? ::readdir(open) : nullptr)
    if (std::string name = entry->d_name; name != "." && name != "..") out.push_back(std::move(name));
  if (open) ::closedir(open);
  return out;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool Output::ok() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

Output capture(const Words& words, bool with_errors) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  if (with_errors) posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  auto argv = argv_of(words);
  Output out;
  pid_t pid = -1;
  int failed = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  char buffer[4096];
  if (failed == 0) {
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) out.text.append(buffer, static_cast<std::size_t>(n));
    ::waitpid(pid, &out.status, 0);
  }
  ::close(ends[0]);
  return out;
}

double time_hello(const Words& words) {
  auto start = Clock::now();
  Output out = capture(words);
  double took = micros_since(start);
  if (!out.ok() || out.text != "hello\n") throw std::runtime_error(words[0] + " did not print hello: " + first_line(out.text));
  return took;
}

bool on_path(const std::string& program) { return capture({"sh", "-c", "command -v " + program}).ok(); }

pid_t start_in_background(const Words& words, const fs::path& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  auto argv = argv_of(words);
  pid_t pid = -1;
  int failed = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw std::runtime_error("cannot start " + words[0]);
  return pid;
}

bool has_ended(pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; }

void end_process(pid_t pid, double seconds) {
  if (pid <= 0) return;
  ::kill(pid, SIGTERM);
  for (auto start = Clock::now(); !has_ended(pid);) {
    if (seconds_since(start) > seconds) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      return;
    }
    ::usleep(2'000);
  }
}

WorkFolder::WorkFolder() {
  std::string folder = "/tmp/osb-bench-XXXXXX";
  if (!::mkdtemp(folder.data())) die("no temporary directory");
  path_ = folder;
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace bench
