// opensandbox-launch: the privileged half. Small, single-threaded, no JSON, no network.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "launch/launcher.h"
#include "launch/start_up.h"

namespace {

using namespace osb;
using launch::LauncherOptions;

constexpr char kUsage[] =
    "usage: opensandbox-launch --instance NAME --run-dir DIR --ranges-dir DIR --data-dir DIR --execd FILE\n"
    "                          [--private] [--allow-uid N] [--pool N] [--stems N] [--background] [--log FILE]\n"
    "                          [--fail-at STEP | --die-at STEP]   (fault injection for tests)\n";

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
    else if (auto step = wire::step_named(value); step && flag == "--fail-at")
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

}  // namespace

int main(int argc, char** argv) {
  auto arguments = parse(argc, argv);
  if (!arguments || !is_instance_name(arguments->options.host.instance)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  ::umask(022);
  launch::ignore_signals_of_others();
  ::clearenv();
  ::setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  Fd ready = arguments->background ? launch::go_to_background() : Fd();
  auto launcher = launch::Launcher::start(arguments->options);
  if (!launcher) return launch::tell_failure("opensandbox-launch", launcher.error());
  if (ready) launch::say_started(std::move(ready), arguments->log_file);
  if (auto ended = (*launcher)->run(); !ended) {
    log::error("launcher failed", {{"error", ended.error().what()}});
    return 1;
  }
  return 0;
}
