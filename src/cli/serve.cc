#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/daemon_config.h"
#include "cli/spawn.h"
#include "sys/kernel_file.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{
    kConfigOption,
    OptionSpec{"--ready-fd", "N", "write one JSON line there when ready", false, {}, false, true},
    OptionSpec{"--private", "PID", "end with that parent and leave nothing", false, {}, false, true},
};

// The same words again, to the program that has the daemon in it; it takes over this process.
Result<int> serve(const Args&) {
  TRY(auto program, serve_program());
  TRY(auto line, sys::read_file("/proc/self/cmdline", 1 << 20));
  std::vector<std::string> words;
  for (auto word : split(line, '\0')) words.emplace_back(word);
  if (!words.empty()) words.pop_back();
  std::vector<char*> raw;
  for (auto& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  ::execv(program.c_str(), raw.data());
  return Error::from_errno(cat("start ", program), errno);
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
