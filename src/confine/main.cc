// opensandbox-confine: makes the sandboxes of the `process` runtime for one ordinary user. Small, single-threaded, no privilege, no JSON.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "confine/keeper.h"

namespace {

using namespace osb;
using confine::KeeperOptions;

constexpr char kUsage[] =
    "usage: opensandbox-confine --run-dir DIR --data-dir DIR --execd FILE [--workspace DIR] [--private] [--background] [--log FILE]\n"
    "                           [--fail-at STEP | --die-at STEP]   (fault injection for tests)\n"
    "       opensandbox-confine --check                            can this user make sandboxes on this host?\n";

std::optional<wire::Step> parse_step(std::string_view name) {
  for (std::uint32_t i = 1; i < static_cast<std::uint32_t>(wire::Step::count_); ++i)
    if (name == wire::name_of(static_cast<wire::Step>(i))) return static_cast<wire::Step>(i);
  return std::nullopt;
}

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
  auto step = parse_step(value);
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

int tell(const Error& error) {
  std::fprintf(stderr, "opensandbox-confine: %s\n", error.what().c_str());
  if (!error.hint().empty()) std::fprintf(stderr, "hint: %s\n", error.hint().c_str());
  return 1;
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

int check_host() {
  if (auto user = confine::check_user(); !user) return tell(user.error());
  if (auto fine = confine::check_namespaces(); !fine) return tell(fine.error());
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
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C in the terminal of whoever started us is meant for them
  ::clearenv();
  Fd ready = arguments->background ? go_to_background() : Fd();
  auto keeper = confine::Keeper::start(arguments->options);
  if (!keeper) return tell(keeper.error());
  if (ready) {
    char good = 0;
    [[maybe_unused]] auto n = ::write(ready.get(), &good, 1);
    ready.reset();
    leave_terminal(arguments->log_file);
  }
  if (auto ended = (*keeper)->run(); !ended) {
    log::error("keeper failed", {{"error", ended.error().what()}});
    return 1;
  }
  return 0;
}
