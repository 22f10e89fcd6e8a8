// opensandbox-launch: the privileged half. Small, single-threaded, no JSON, no network.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "launch/launcher.h"

namespace {

using namespace osb;
using launch::LauncherOptions;

constexpr char kUsage[] =
    "usage: opensandbox-launch --instance NAME --run-dir DIR --ranges-dir DIR --data-dir DIR --execd FILE\n"
    "                          [--private] [--allow-uid N] [--pool N] [--stems N] [--background] [--log FILE]\n"
    "                          [--fail-at STEP | --die-at STEP]   (fault injection for tests)\n";

std::optional<wire::Step> parse_step(std::string_view name) {
  for (std::uint32_t i = 1; i < static_cast<std::uint32_t>(wire::Step::count_); ++i)
    if (name == wire::name_of(static_cast<wire::Step>(i))) return static_cast<wire::Step>(i);
  return std::nullopt;
}

struct Arguments {
  LauncherOptions options;
  bool background = false;
  std::string log_file;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments out;
  auto& host = out.options.host;
  for (int i = 1; i < argc; ++i) {
    std::string_view flag = argv[i];
    if (flag == "--private") {
      out.options.private_instance = true;
      continue;
    }
    if (flag == "--background") {
      out.background = true;
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    std::string_view value = argv[++i];
    if (flag == "--instance")
      host.instance = value;
    else if (flag == "--run-dir")
      host.run_dir = value;
    else if (flag == "--ranges-dir")
      host.ranges_dir = value;
    else if (flag == "--data-dir")
      host.data_dir = value;
    else if (flag == "--execd")
      host.execd = value;
    else if (flag == "--log")
      out.log_file = value;
    else if (auto number = parse_int<unsigned>(value); number && flag == "--allow-uid")
      out.options.allowed_uid = *number;
    else if (number && flag == "--pool")
      out.options.pool = *number;
    else if (number && *number <= 64 && flag == "--stems")
      out.options.stems = *number;
    else if (auto step = parse_step(value); step && flag == "--fail-at")
      out.options.fail_at = *step;
    else if (step && flag == "--die-at")
      out.options.die_at = *step;
    else
      return std::nullopt;
  }
  bool complete =
      !host.instance.empty() && !host.run_dir.empty() && !host.ranges_dir.empty() && !host.data_dir.empty() && !host.execd.empty();
  return complete ? std::optional(std::move(out)) : std::nullopt;
}

// Names become parts of cgroup and directory names.
bool is_instance_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

// Standard streams of whoever started us are not ours to keep.
void leave_terminal(const std::string& log_file) {
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Fd log(log_file.empty() ? -1 : ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ::dup2(null.get(), 0);
  ::dup2(null.get(), 1);
  ::dup2(log ? log.get() : null.get(), 2);
}

// Runs the rest of main in a child of its own session; the caller waits for one byte that says whether it started.
// The fork comes before everything else: the lock and the mount namespace belong to the process that stays.
Fd go_to_background() {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) ::_exit(1);
  if (pid_t child = ::fork(); child != 0) {
    ::close(ready[1]);
    char answer = 1;
    ::_exit(child > 0 && ::read(ready[0], &answer, 1) == 1 ? answer : 1);
  }
  ::close(ready[0]);
  ::setsid();
  return Fd(ready[1]);
}

}  // namespace

int main(int argc, char** argv) {
  auto arguments = parse(argc, argv);
  if (!arguments || !is_instance_name(arguments->options.host.instance)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  ::umask(022);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C in the terminal of whoever started us is meant for them
  ::clearenv();
  ::setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  Fd ready = arguments->background ? go_to_background() : Fd();
  auto launcher = launch::Launcher::start(arguments->options);
  if (!launcher) {
    std::fprintf(stderr, "opensandbox-launch: %s\n", launcher.error().what().c_str());
    if (!launcher.error().hint().empty()) std::fprintf(stderr, "hint: %s\n", launcher.error().hint().c_str());
    return 1;
  }
  if (ready) {
    char good = 0;
    [[maybe_unused]] auto n = ::write(ready.get(), &good, 1);
    ready.reset();
    leave_terminal(arguments->log_file);
  }
  if (auto ended = (*launcher)->run(); !ended) {
    log::error("launcher failed", {{"error", ended.error().what()}});
    return 1;
  }
  return 0;
}
