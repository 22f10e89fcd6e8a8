// opensandbox-execd: the daemon inside a sandbox. See README.md beside this file.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "execd/daemon.h"
#include "execd/stem.h"

namespace {

constexpr std::string_view kUsage =
    "usage: opensandbox-execd --stem | --native\n"
    "       opensandbox-execd [--port 44772] [--socket PATH] [--access-token TOKEN] [-- PROGRAM ARGUMENT...]\n"
    "\n"
    "Runs inside a sandbox: commands, their output and their exit status over HTTP.\n"
    "  --stem            divides into the first processes of native sandboxes; descriptor 3 comes from opensandbox-launch\n"
    "  --native          pid 1 of a native sandbox; descriptors 3 to 6 come from opensandbox-launch\n"
    "  --port N          listen on this TCP port\n"
    "  --socket PATH     listen on this unix socket\n"
    "  --access-token T  ask for T in X-EXECD-ACCESS-TOKEN (also: the variable EXECD_ACCESS_TOKEN)\n"
    "  -- PROGRAM ...    start this, and exit with its status when it ends\n";

struct Arguments {
  bool native = false;
  bool stem = false;
  bool help = false;
  std::uint16_t port = 0;
  std::string socket_path;
  std::string access_token;
  std::vector<std::string> entrypoint;
  std::string problem;
};

// A secret in argv or the environment can be read from /proc; it is copied and wiped.
std::string take_secret(char* text) {
  std::string secret(text);
  ::explicit_bzero(text, secret.size());
  return secret;
}

void read_value(Arguments& arguments, std::string_view option, char* value) {
  if (option == "--socket") {
    arguments.socket_path = value;
  } else if (option == "--access-token") {
    arguments.access_token = take_secret(value);
  } else {
    auto port = osb::parse_int<std::uint16_t>(value);
    if (!port || *port == 0) arguments.problem = osb::cat("--port: not a port: ", value);
    arguments.port = port.value_or(0);
  }
}

Arguments read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc && arguments.problem.empty(); ++i) {
    std::string_view option = argv[i];
    if (option == "--") {
      arguments.entrypoint.assign(argv + i + 1, argv + argc);
      break;
    }
    bool takes_value = option == "--port" || option == "--socket" || option == "--access-token";
    if (option == "--native")
      arguments.native = true;
    else if (option == "--stem")
      arguments.stem = true;
    else if (option == "--help" || option == "-h")
      arguments.help = true;
    else if (takes_value && i + 1 < argc)
      read_value(arguments, option, argv[++i]);
    else
      arguments.problem = osb::cat(takes_value ? "a value is missing after " : "unknown option ", option);
  }
  if (!arguments.native && !arguments.stem && arguments.port == 0 && arguments.socket_path.empty() && !arguments.help &&
      arguments.problem.empty())
    arguments.problem = "say where to listen: --port, --socket or --native";
  return arguments;
}

void say(int fd, std::string_view text) { [[maybe_unused]] auto n = ::write(fd, text.data(), text.size()); }

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments = read_arguments(argc, argv);
  if (arguments.help) {
    say(1, kUsage);
    return 0;
  }
  if (!arguments.problem.empty()) {
    say(2, osb::cat("opensandbox-execd: ", arguments.problem, "\n\n", kUsage));
    return 2;
  }
  if (arguments.stem) osb::execd::run_stem(3);
  if (arguments.native) {
    auto start = osb::execd::adopt_native();
    if (start) osb::execd::run_daemon(*std::move(start));
    say(2, osb::cat("opensandbox-execd: ", start.error().what(), "\n"));
    return 125;
  }
  if (char* token = ::getenv("EXECD_ACCESS_TOKEN"); token && arguments.access_token.empty()) arguments.access_token = take_secret(token);
  auto start = osb::execd::start_elsewhere(std::move(arguments.entrypoint), std::move(arguments.access_token));
  start.port = arguments.port;
  start.socket_path = std::move(arguments.socket_path);
  osb::execd::run_daemon(std::move(start));
}
