#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/daemon_config.h"
#include "cli/doctor/leaks.h"
#include "cli/doctor/probes.h"
#include "cli/exit_code.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

// What is still going away when we look is not left behind: only what is seen in every look counts.
constexpr int kLooks = 4;
constexpr int kBetweenLooksMillis = 250;

constexpr std::array kOptions{
    OptionSpec{"--leaks", "", "look for what belongs to no sandbox instead; exit status 1 when there is something"},
    kConfigOption,
    kOutputOption,
};

Result<std::vector<Leak>> look_for_leaks(const LeakPlaces& places) {
  TRY(auto host, gather(places));
  auto leaks = find_leaks(host);
  for (int look = 1; look < kLooks && !leaks.empty(); ++look) {
    ::poll(nullptr, 0, kBetweenLooksMillis);
    TRY(auto later, gather(places));
    auto still = find_leaks(later);
    std::vector<Leak> both;
    std::ranges::set_intersection(leaks, still, std::back_inserter(both));
    leaks = std::move(both);
  }
  return leaks;
}

std::string render_leaks(const std::vector<Leak>& leaks, bool as_json) {
  if (as_json) {
    boost::json::array rows;
    for (const auto& leak : leaks) rows.push_back(boost::json::object{{"kind", leak.kind}, {"what", leak.what}});
    return pretty(boost::json::object{{"leaks", std::move(rows)}});
  }
  if (leaks.empty()) return "no leaks\n";
  Table table({"UNOWNED", "WHAT"});
  for (const auto& leak : leaks) table.row({leak.kind, leak.what});
  return table.render();
}

Result<int> show_leaks(const Args& args, const daemon::Config& config) {
  TRY(auto leaks, look_for_leaks({config.storage.run_dir, config.storage.state_dir}));
  CHECK_OK(print(render_leaks(leaks, wants_json(args))));
  return leaks.empty() ? kExitOk : kExitFailure;
}

std::vector<Finding> examine(const daemon::Config& config) {
  std::vector<Finding> out;
  auto add = [&](std::vector<Finding> more) { std::ranges::move(more, std::back_inserter(out)); };
  // Each runtime needs something else; an ordinary user also hears of the one that needs nothing of him.
  bool process = config.runtime == "process";
  if (!process) {
    add(probe_privileges());
    add(probe_namespaces());
    add(probe_cgroups());
    add(probe_mounts(config.storage.state_dir));
  }
  add(probe_confinement());
  if (!process) add(probe_host(config.storage.state_dir));
  if (process || ::geteuid() != 0) add(probe_process(process));
  add(probe_daemon(config));
  return out;
}

Result<int> doctor(const Args& args) {
  TRY(auto config, load_config(args));
  if (args.has("leaks")) return show_leaks(args, config);
  auto findings = examine(config);
  CHECK_OK(print(wants_json(args) ? render_findings_json(findings) : render_findings(findings)));
  return std::ranges::any_of(findings, is_fatal) ? kExitFailure : kExitOk;
}

}  // namespace

constinit const CommandSpec kDoctor{
    .name = "doctor",
    .also = {},
    .summary = "tell what isolation this host gives, and how to fix what is missing",
    .usage = "[options]",
    .details =
        "Tries each part in a child process instead of trusting a version: ok, weak (works, could be better) or missing, what it\n"
        "means, and the one command that fixes it. Exit status 1 when something is missing without which no sandbox is made.\n"
        "With runtime process in the configuration (or --runtime process) it asks for that one, and lists what it does not isolate.\n"
        "\n"
        "With --leaks it compares processes, cgroups, sockets, id ranges, mounts, loop devices and disks of this host with\n"
        "the ledgers of the launchers, and lists what no sandbox owns.",
    .examples =
        "sudo opensandbox doctor\n"
        "opensandbox doctor --runtime process\n"
        "sudo opensandbox doctor --leaks -o json",
    .options = kOptions,
    .config_flags = true,
    .main = doctor,
};

}  // namespace osb::cli
