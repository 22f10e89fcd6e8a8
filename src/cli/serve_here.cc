#include "cli/serve_here.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "base/fd.h"
#include "base/text.h"
#include "cli/daemon_config.h"
#include "cli/terminal.h"
#include "daemon/app.h"

namespace osb::cli {
namespace {

// The other end waits for one line; a failure before the daemon could speak is told there too.
void report_failure(const Fd& ready, const Error& error) {
  if (ready)
    write_all(ready.get(), cat("{\"ready\":false,\"error\":", json_string(error.what()), ",\"hint\":", json_string(error.hint()), "}\n"));
}

// A private daemon must not outlive the run that it was started for, however that one ends.
Result<> follow_parent(std::string_view parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (cat(::getppid()) != parent) return Error(Errc::unavailable, "the process this daemon was started for is gone");
  return Ok{};
}

Result<int> start(const Args& args, int ready) {
  TRY(auto config, load_config(args));
  daemon::RunOptions options;
  options.ready.fd = ready;
  options.private_instance = args.has("private");
  if (options.private_instance) CHECK_OK(follow_parent(args.get("private")));
  options.reload = [inputs = config_inputs(args)] { return daemon::load(inputs); };
  return daemon::run_daemon(config, std::move(options));
}

}  // namespace

Result<int> serve_here(const Args& args) {
  int ready = parse_int<int>(args.get("ready-fd")).value_or(-1);
  Fd ours(ready >= 0 ? ::fcntl(ready, F_DUPFD_CLOEXEC, 10) : -1);
  if (ready >= 0) ::fcntl(ready, F_SETFD, FD_CLOEXEC);
  auto status = start(args, ready);
  if (!status) report_failure(ours, status.error());
  return status;
}

}  // namespace osb::cli
