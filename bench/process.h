// Starting programs and reading what they print, as plainly as posix_spawn allows: this is what the floor is made of.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace bench {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

[[noreturn]] void die(const std::string& why);
double micros_since(Clock::time_point start);
double seconds_since(Clock::time_point start);

// What can be read, and what is there: processes and groups come and go while they are looked at, which is no error.
std::string read_file(const fs::path& path);
std::vector<std::string> names_in(const fs::path& folder);
void write_file(const fs::path& path, const std::string& text);
std::string first_line(const std::string& text);

struct Output {
  int status = -1;  // as waitpid gives it
  std::string text;
  bool ok() const;
};

// Starts, captures standard output (and standard error if asked for), reaps.
Output capture(const Words& words, bool with_errors = false);
// The same, timed; throws unless it printed hello and nothing else.
double time_hello(const Words& words);
bool on_path(const std::string& program);

// Starts a program that stays, in a session of its own so that Ctrl-C reaches only us; output goes to `log`.
pid_t start_in_background(const Words& words, const fs::path& log);
// SIGTERM, then after `seconds` SIGKILL; reaps.
void end_process(pid_t pid, double seconds);
bool has_ended(pid_t pid);  // reaps

// A folder of our own, removed with everything in it.
class WorkFolder {
 public:
  WorkFolder();
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace bench
