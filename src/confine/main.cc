// opensandbox-confine: makes the sandboxes of the `process` runtime for one ordinary user. Small, single-threaded, no privilege, no JSON.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "confine/keeper.h"
#include "launch/start_up.h"

namespace {

using namespace osb;
using confine::KeeperOptions;

constexpr char kName[] = "opensandbox-confine";
constexpr char kUsage[] =
    "usage: opensandbox-confine --run-dir DIR --data-dir DIR --execd FILE [--workspace DIR] [--private] [--background] [--log FILE]\n"
    "                           [--fail-at STEP | --die-at STEP]   (fault injection for tests)\n"
    "       opensandbox-confine --check                            can this user make sandboxes on this host?\n";

struct Arguments {
  KeeperOptions options;
  bool check = false;
  bool background = false;
  std::string log_file;
};

bool take_switch(Arguments& out, std::string_view flag) {
  bool* which = flag == "--private"      ? &out.options.private_instance
                : flag == "--background" ? &out.background
                : flag == "--check"      ? &out.check
                                         : nullptr;
  if (which != nullptr) *which = true;
  return which != nullptr;
}

bool take_value(Arguments& out, std::string_view flag, std::string_view value) {
  auto& host = out.options.host;
  std::string* text = flag == "--run-dir"     ? &host.run_dir
                      : flag == "--data-dir"  ? &host.data_dir
                      : flag == "--execd"     ? &host.execd
                      : flag == "--workspace" ? &host.workspace
                      : flag == "--log"       ? &out.log_file
                                              : nullptr;
  if (text != nullptr) return *text = value, true;
  auto step = wire::step_named(value);
  if (!step || (flag != "--fail-at" && flag != "--die-at")) return false;
  (flag == "--fail-at" ? out.options.fail_at : out.options.die_at) = *step;
  return true;
}

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    if (take_switch(out, argv[i])) continue;
    if (i + 1 == argc || !take_value(out, argv[i], argv[i + 1])) return std::nullopt;
    ++i;
  }
  const auto& host = out.options.host;
  bool complete = !host.run_dir.empty() && !host.data_dir.empty() && !host.execd.empty();
  return complete || out.check ? std::optional(std::move(out)) : std::nullopt;
}

int check_host() {
  if (auto user = confine::check_user(); !user) return launch::tell_failure(kName, user.error());
  if (auto fine = confine::check_namespaces(); !fine) return launch::tell_failure(kName, fine.error());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  auto arguments = parse(argc, argv);
  if (!arguments) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (arguments->check) return check_host();
  ::umask(077);
  launch::ignore_signals_of_others();
  ::clearenv();
  Fd ready = arguments->background ? launch::go_to_background() : Fd();
  auto keeper = confine::Keeper::start(arguments->options);
  if (!keeper) return launch::tell_failure(kName, keeper.error());
  if (ready) launch::say_started(std::move(ready), arguments->log_file);
  if (auto ended = (*keeper)->run(); !ended) {
    log::error("keeper failed", {{"error", ended.error().what()}});
    return 1;
  }
  return 0;
}
