#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <map>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/live.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/units.h"
#include "cli/usage_rows.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr std::array kOptions{
    OptionSpec{"-s,--sort", "BY", "what comes first (default cpu)", false, "cpu|memory"},
    OptionSpec{"--no-stream", "", "print once, also on a terminal"},
    kHostOption,
    kKeyOption,
    kKeyFileOption,
};

struct ProcessRow {
  std::int64_t pid = 0, parent = 0, user = 0, threads = 0, cpu_millis = 0, memory = 0;
  double percent = 0;
  std::string state, command;
};

std::int64_t number_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

// Asks execd for the processes of one sandbox; what it says is the sandbox's word and shown as such.
class Processes {
 public:
  Processes(Api& api, std::string id, Door door) : api_(api), id_(std::move(id)), door_(std::move(door)) {}

  Result<std::string> draw(bool by_memory) {
    TRY(auto rows, read());
    std::sort(rows.begin(), rows.end(), [by_memory](const ProcessRow& a, const ProcessRow& b) {
      if (by_memory || a.percent == b.percent) return a.memory > b.memory;
      return a.percent > b.percent;
    });
    Table table({"PID", "PARENT", "USER", "S", "CPU", "MEMORY", "THREADS", "TIME", "COMMAND"});
    for (const auto& row : rows) {
      char percent[32], time[32];
      std::snprintf(percent, sizeof percent, "%.1f%%", row.percent);
      std::snprintf(time, sizeof time, "%.2fs", static_cast<double>(row.cpu_millis) / 1000);
      table.row({cat(row.pid), cat(row.parent), cat(row.user), row.state, percent, format_bytes(static_cast<std::uint64_t>(row.memory)),
                 cat(row.threads), time, row.command});
    }
    return table.render();
  }

 private:
  Result<std::vector<ProcessRow>> read() {
    TRY(auto reply, api_.call("GET", door_.path + "/osb/v1/processes", {}, door_.headers));
    TRY(auto object, parse_object(reply.body));
    const auto* list = object.if_contains("processes");
    if (list == nullptr || !list->is_array()) return Error(Errc::malformed, cat("sandbox ", id_, " does not tell its processes"));
    auto now = std::chrono::steady_clock::now();
    auto elapsed = std::chrono::duration<double, std::milli>(now - last_).count();
    std::map<std::int64_t, std::int64_t> seen;
    std::vector<ProcessRow> rows;
    for (const auto& item : list->get_array()) {
      if (!item.is_object()) continue;
      const auto& one = item.get_object();
      ProcessRow row{number_of(one, "pid"),
                     number_of(one, "parent"),
                     number_of(one, "user"),
                     number_of(one, "threads"),
                     number_of(one, "cpuMillis"),
                     std::max<std::int64_t>(number_of(one, "memoryBytes"), 0),
                     0,
                     text_of(one, "state"),
                     text_of(one, "command")};
      seen[row.pid] = row.cpu_millis;
      if (auto before = before_.find(row.pid); before != before_.end() && elapsed > 0)
        row.percent = std::max(0.0, static_cast<double>(row.cpu_millis - before->second) * 100 / elapsed);
      rows.push_back(std::move(row));
    }
    before_ = std::move(seen);
    last_ = now;
    return rows;
  }

  Api& api_;
  std::string id_;
  Door door_;
  std::map<std::int64_t, std::int64_t> before_;  // pid -> processor time at the last look
  std::chrono::steady_clock::time_point last_;
};

Result<int> top(const Args& args) {
  TRY(auto api, find_daemon(args));
  bool by_memory = args.get("sort") == "memory";
  if (args.operands.empty()) {
    return show_live(args.has("no-stream"), [&]() -> Result<std::string> {
      TRY(auto rows, read_usage(api, {}));
      sort_usage(rows, by_memory ? UsageOrder::memory : UsageOrder::cpu);
      return cat(rows.size(), rows.size() == 1 ? " sandbox\n" : " sandboxes\n", usage_table(rows));
    });
  }
  TRY(auto id, api.resolve(args.operands[0]));
  TRY(auto door, api.door(id));
  Processes processes(api, id, std::move(door));
  return show_live(args.has("no-stream"), [&] { return processes.draw(by_memory); });
}

}  // namespace

constinit const CommandSpec kTop{
    .name = "top",
    .also = {},
    .summary = "watch the busiest sandboxes, or the processes of one",
    .usage = "[options] [ID]",
    .details =
        "Without an id: sandboxes, the busiest first. With one: the processes in it, as they are seen from inside.\n"
        "On a terminal it is drawn again every second until ^C.",
    .examples = "opensandbox top\nopensandbox top --sort memory\nopensandbox top 7k2",
    .options = kOptions,
    .operand = Operand::sandbox,
    .max_operands = 1,
    .main = top,
};

}  // namespace osb::cli
