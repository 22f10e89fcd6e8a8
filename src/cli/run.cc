#include "cli/run.h"

#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <memory>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/private_daemon.h"
#include "cli/runtime_choice.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

using std::chrono::seconds;

// A sandbox nobody renews ends by itself: the net under a `run` that is killed before it can clean up.
constexpr seconds kNet{60};
constexpr Millis kRenewEvery{20'000};
constexpr Millis kRenewWithin{3000};  // the streams wait meanwhile
constexpr seconds kKeptFor{3600};

constexpr std::array kOptions{
    OptionSpec{"-e,--env", "K=V", "a variable; K alone passes the value it has here", true},
    OptionSpec{"-w,--workdir", "DIR", "where the command starts (default /workspace)"},
    kImageOption,
    kMemoryOption,
    kCpusOption,
    kPidsOption,
    kDiskOption,
    kSnapshotOption,
    kVolumeOption,
    kInteractiveOption,
    kTerminalOption,
    OptionSpec{"--timeout", "DURATION", "kill the command after this long; exit status 124"},
    kModeOption,
    kSyscallsOption,
    kWritableOption,
    OptionSpec{"--keep", "", "leave the sandbox for an hour; its id goes to stderr"},
    kNameOption,
    kMetadataOption,
    kRuntimeOption,
    kWorkspaceOption,
    OptionSpec{"--verbose", "", "say on stderr what the runtime is and what it does not isolate"},
    kHostOption,
    kKeyOption,
    kKeyFileOption,
};

// The daemon to use and, where it is our own, the owner that ends it.
struct Place {
  std::unique_ptr<PrivateDaemon> own;
  Api api;
};

Result<Place> own_place(const WantedRuntime& wanted, Signals& signals) {
  TRY(auto daemon, PrivateDaemon::start(signals, {wanted.name, wanted.workspace}));
  auto own = std::make_unique<PrivateDaemon>(std::move(daemon));
  Api api(own->address(), {});
  return Place{std::move(own), std::move(api)};
}

// A daemon that was named must be the right one; one that is merely there is passed by when it is not.
Result<Place> find_place(const Args& args, const WantedRuntime& wanted, Signals& signals) {
  TRY(auto named, named_daemon(args));
  if (named && !wanted.workspace.empty())
    return usage_error("--workspace is for a sandbox made here; the named daemon has its own", "leave out --host");
  if (!named && !wanted.workspace.empty()) return own_place(wanted, signals);
  auto found = find_daemon(args);
  bool nobody = !found && found.error().kind() == Errc::unavailable;
  if (!found && nobody && !named) return own_place(wanted, signals);
  if (!found) return std::move(found).error();
  if (wanted.name.empty()) return Place{nullptr, *std::move(found)};
  TRY(auto runtime, runtime_of(*found));
  if (runtime == wanted.name) return Place{nullptr, *std::move(found)};
  if (!named) return own_place(wanted, signals);
  return Error(Errc::unsupported, cat("the named daemon makes sandboxes with the runtime ", runtime, ", not ", wanted.name))
      .with_hint("leave out --runtime or --host");
}

Result<> say_what_it_is(Api& api) {
  TRY(auto runtime, runtime_of(api));
  note(cat("runtime ", runtime, runtime == "process" ? "; what it does not isolate:" : ""));
  if (runtime == "process")
    for (const Gap& gap : kGapsOfProcess) note(cat("  ", gap.of, ": ", gap.says));
  return Ok{};
}

// Deletes the sandbox when it goes out of scope, whatever happened in between.
class Lease {
 public:
  Lease(Api& api, std::string id, bool keep) : api_(api), id_(std::move(id)), keep_(keep) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { keep_ ? say_kept() : end(); }

 private:
  void say_kept() const { note(cat("kept sandbox ", id_, " for ", format_duration(kKeptFor), "; `opensandbox kill ", id_, "` ends it")); }
  void end() {
    api_.interrupted_by(-1);
    auto removed = api_.remove(id_);
    if (!removed && removed.error().kind() != Errc::not_found)
      warn(cat("sandbox ", id_, " is left to its expiry: ", removed.error().what()));
  }

  Api& api_;
  std::string id_;
  bool keep_;
};

// The sandbox is gone and the command with it: say why, where the daemon still knows.
Error lost_sandbox(Api& api, const std::string& id, Error error) {
  auto sandbox = api.get(id);
  auto state = sandbox ? text_of(*sandbox, "status", "state") : std::string();
  if (state == "Terminated" || state == "Failed") return std::move(error).with_hint(text_of(*sandbox, "status", "message"));
  if (sandbox) return error;
  bool gone = sandbox.error().kind() == Errc::not_found;
  return std::move(error).with_hint(gone ? "somebody killed it, or its time was over" : "the daemon stopped while the command ran");
}

Result<int> run_in(Api& api, const RunOptions& options, Signals& signals) {
  api.interrupted_by(signals.fd());
  TRY(auto made, api.create(to_json(options.sandbox)));
  auto id = text_of(made, "id");
  if (id.empty()) return Error(Errc::malformed, "the daemon made a sandbox without an id");
  Lease lease(api, id, options.keep);
  // From here on signals belong to the command; renewing must not be cut short by one.
  api.interrupted_by(-1);
  bool renews = !options.keep && !options.command.timeout;
  auto prepare = [&](Session& session) {
    if (renews) session.every(kRenewEvery, [&] { [[maybe_unused]] auto until = api.renew(id, kNet, kRenewWithin); });
  };
  auto status = carry(api, id, options.command, signals, prepare);
  if (!status && status.error().kind() == Errc::unavailable) return lost_sandbox(api, id, std::move(status).error());
  return status;
}

Result<int> run(const Args& args) {
  TRY(auto options, read_run_options(args));
  return run_once(args, std::move(options));
}

}  // namespace

Result<int> run_once(const Args& args, RunOptions options) {
  Signals signals;
  TRY(auto wanted, read_wanted_runtime(args));
  TRY(auto place, find_place(args, wanted, signals));
  if (args.has("verbose")) CHECK_OK(say_what_it_is(place.api));
  auto status = run_in(place.api, options, signals);
  bool interrupted = !status && status.error().sys() == EINTR;
  if (!interrupted) return status;
  return kExitSignalBase + signals.take().value_or(SIGINT);
}

Result<RunOptions> read_run_options(const Args& args) {
  RunOptions out;
  TRY(out.sandbox, read_sandbox_request(args));
  TRY(out.command.env, parse_env(args.all("env")));
  out.command.argv = args.words;
  out.command.directory = args.get("workdir");
  TRY(out.command.terminal, wants_terminal(args));
  out.keep = args.has("keep");
  out.sandbox.lifetime = out.keep ? kKeptFor : kNet;
  if (args.has("timeout")) {
    auto limit = parse_duration(args.get("timeout"));
    if (!limit) return usage_error(cat("--timeout ", args.get("timeout"), ": ", limit.error().what()), limit.error().hint());
    out.command.timeout = *limit;
    // The command's own limit ends first, so that its end can be told from the sandbox's.
    out.sandbox.lifetime = std::max(*out.sandbox.lifetime, std::chrono::ceil<seconds>(*limit) + kNet / 2);
  }
  return out;
}

constinit const CommandSpec kRun{
    .name = "run",
    .also = {},
    .summary = "run one command in a sandbox of its own",
    .usage = "[options] [--] CMD [ARG...]",
    .details =
        "Makes a sandbox, runs the command in it, throws the sandbox away. stdin, stdout, stderr, signals and the exit\n"
        "status pass through as they are. There is no network, and nothing of this host can be written.\n"
        "\n"
        "Uses the daemon that --host or OPENSANDBOX_HOST names, else the one on "
        "/run/opensandbox/default/api.sock"
        ", else\n"
        "starts one for this run alone (needs root) and removes it afterwards.\n"
        "\n"
        "--runtime process needs no root: a user namespace of your own, Landlock, system-call filter, no network, a read-only root, your\n"
        "home not shown. --workspace DIR makes a directory of yours its /workspace; what the command writes there stays. It does not\n"
        "isolate everything that the runtime native does: --verbose and docs/runtimes.md say what.\n"
        "\n"
        "With -t the command gets this terminal: keys, size and signals are its own until it ends. Without, stdin passes as it is\n"
        "(a pipe, a file, or lines typed here).\n"
        "\n"
        "Ctrl-C reaches the command; a second one within three seconds ends the sandbox.\n"
        "Exit status: the command's own; 128+n when signal n ended it; 124 after --timeout; 125 when opensandbox\n"
        "itself failed; 126 and 127 when the program cannot be executed or found; 2 for a wrong command line; 4 for a\n"
        "wrong key.",
    .examples =
        "opensandbox run -- python3 -c 'print(1+1)'\n"
        "opensandbox run -it -- bash\n"
        "opensandbox run --memory 256Mi --timeout 10s -- ./untrusted < input > output\n"
        "tar c src | opensandbox run -w /workspace -- sh -c 'tar x && make -C src'\n"
        "opensandbox run -e LANG=C --mode root --rw -- id\n"
        "opensandbox run --runtime process --workspace . -- make test",
    .options = kOptions,
    .operand = Operand::program,
    .carries_command = true,
    .main = run,
};

}  // namespace osb::cli
