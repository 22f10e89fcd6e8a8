// RunRequest: a program a client asks for, parsed and checked; prepare() completes it with what the sandbox is.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "execd/processes.h"
#include "execd/setup.h"

namespace osb::execd {

struct RunRequest {
  std::string command;            // text for a shell; empty when argv is set
  std::vector<std::string> argv;  // executed as it is
  std::string cwd;                // as given; empty = the sandbox's
  Env env;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::chrono::milliseconds> timeout;
  bool background = false;
  bool raw = false;                  // output in pieces as the program wrote it, not line by line
  std::optional<std::string> input;  // all of its standard input
  bool with_stdin = false;
  std::optional<WindowSize> terminal;
};

inline constexpr std::size_t kMaxCommandBytes = 128 * 1024 - 1;  // what one argument of execve(2) may hold

inline constexpr std::size_t kMaxInputBytes = 1024 * 1024;
inline constexpr std::size_t kMaxCommandBody = 2 * 1024 * 1024;  // with an input, which comes in base64

// Bodies of POST /command and POST /osb/v1/exec.
Result<RunRequest> parse_command_request(std::string_view body);
Result<RunRequest> parse_exec_request(std::string_view body);

// Environment, identity, directory and what to execute. The result refers to `setup`.
Result<StartRequest> prepare(const Setup& setup, RunRequest request);

}  // namespace osb::execd
