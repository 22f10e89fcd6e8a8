// Starting programs and reading what they print, as plainly as posix_spawn allows: this is what the floor is made of.
#pragma once
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace bench {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

[[noreturn]] inline void die(const std::string& why) {
  std::cerr << "bench: " << why << "\n";
  std::exit(1);
}

inline double micros_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

inline std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

struct Output {
  int status = -1;  // as waitpid gives it
  std::string text;
  bool ok() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

// Starts, captures standard output (and standard error if asked for), reaps.
inline Output capture(const Words& words, bool with_errors = false) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) die("pipe2 failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  if (with_errors) posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
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

inline double time_hello(const Words& words) {
  auto start = Clock::now();
  Output out = capture(words);
  double took = micros_since(start);
  if (!out.ok() || out.text != "hello\n") throw std::runtime_error(words[0] + " did not print hello: " + first_line(out.text));
  return took;
}

inline bool on_path(const std::string& program) { return capture({"sh", "-c", "command -v " + program}).ok(); }

}  // namespace bench
