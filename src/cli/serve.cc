#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/fd.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/daemon_config.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "daemon/app.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{
    kConfigOption,
    OptionSpec{"--ready-fd", "N", "write one JSON line there when ready", false, {}, false, true},
    OptionSpec{"--private", "PID", "end with that parent and leave nothing", false, {}, false, true},
};

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

Result<int> serve(const Args& args) {
  int ready = parse_int<int>(args.get("ready-fd")).value_or(-1);
  Fd ours(ready >= 0 ? ::fcntl(ready, F_DUPFD_CLOEXEC, 10) : -1);
  if (ready >= 0) ::fcntl(ready, F_SETFD, FD_CLOEXEC);
  auto status = start(args, ready);
  if (!status) report_failure(ours, status.error());
  return status;
}

}  // namespace

constinit const CommandSpec kServe{
    .name = "serve",
    .also = {},
    .summary = "run the daemon in the foreground",
    .usage = "[options]",
    .details =
        "Listens on <run_dir>/<instance>/api.sock (whoever may open the file may use it) and on TCP with a key, which is\n"
        "made at the first start and kept in <state_dir>/api-key. Logs go to stderr, one JSON object a line.\n"
        "SIGTERM and SIGINT end it; sandboxes live on and are found again at the next start. SIGHUP reads the\n"
        "configuration again. Every option can also stand in the file or in the environment: see `config check`.",
    .examples =
        "opensandbox serve\n"
        "opensandbox serve --config /etc/opensandbox/sandbox-config.yaml\n"
        "opensandbox serve --instance ci --state-dir /srv/ci --port 9090",
    .options = kOptions,
    .config_flags = true,
    .main = serve,
};

}  // namespace osb::cli
