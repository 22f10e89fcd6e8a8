#include "density.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "interrupt.h"
#include "lifecycle.h"
#include "load.h"
#include "machine.h"
#include "traces.h"

namespace bench {
namespace {

constexpr const char* kGroup = "density";
constexpr std::size_t kConnections = 8;
constexpr double kSettleMs = 1000, kGoneSeconds = 120;

std::string counted(int count, const std::string& what) {
  std::string text = std::to_string(count);
  if (count >= 1000) text.insert(text.size() - 3, ",");
  return text + " idle: " + what;
}

class Density {
 public:
  Density(Context& context, int count, Daemon& daemon) : context_(context), count_(count), daemon_(daemon), client_(daemon.tcp()) {}

  void run() {
    for (int turn = 0; turn < 10; ++turn) client_.whole_life();
    pause_ms(kSettleMs);
    before_ = memory();
    traces_ = traces_of(daemon_);
    create_all();
    look_at_memory();
    look_at_execds();
    one_more();
    watch_idle();
    delete_all();
  }

 private:
  Row& value(const std::string& what, const std::string& unit, double number) {
    Row& row = context_.rows.value(kGroup, counted(count_, what), unit, number);
    row.is_ours = true;
    return row;
  }

  void create_all() {
    LoadResult made = run_load(creates(daemon_.tcp(), kConnections, static_cast<std::size_t>(count_), ids_));
    Row& row = value("created, 8 connections", "1/s", made.rate());
    row.extra = {{"seconds", made.seconds},
                 {"p50_ms", quantile(made.samples, 0.5) / 1e3},
                 {"p99_ms", quantile(made.samples, 0.99) / 1e3},
                 {"errors", static_cast<double>(made.errors)}};
    row.note = made.first_error;
    if (ids_.empty()) throw std::runtime_error("no sandbox was made: " + made.first_error);
  }

  void look_at_memory() {
    pause_ms(kSettleMs);
    Memory after = memory();
    auto each = static_cast<double>(ids_.size());
    // The kernel calls much of what it can take back available; what it counts by kind misses some. The larger of the two is told.
    double available = (before_.available - after.available) / each, kinds = (after.parts - before_.parts) / each;
    Row& row = context_.rows.value(kGroup, memory_row(count_), "MiB", std::max(available, kinds));
    row.is_ours = true;
    row.extra = {{"less_available_MiB", available}, {"sum_of_kinds_MiB", kinds}, {"alive", each}};
    value("serve, resident", "MiB", rss_mib(daemon_.serve()));
    value("launcher, resident", "MiB", rss_mib(daemon_.launcher()));
  }

  void look_at_execds() {
    std::vector<double> pss, own;
    for (pid_t pid : traces_of(daemon_).children) {
      double share = rollup_kib(pid, "Pss");
      if (share <= 0) continue;
      pss.push_back(share);
      own.push_back(rollup_kib(pid, "Private_Clean") + rollup_kib(pid, "Private_Dirty"));
      if (pss.size() == 100) break;
    }
    value("execd, private", "KiB", quantile(own, 0.5)).extra = {{"pss_KiB", quantile(pss, 0.5)},
                                                                {"looked_at", static_cast<double>(pss.size())}};
  }

  // One sandbox more, again and again, beside the idle ones.
  void one_more() {
    Row& create = context_.rows.ours(kGroup, create_row(count_));
    Row& whole = context_.rows.ours(kGroup, "  " + counted(count_, "one more, create+exec+delete"));
    for (int turn = 0; turn < (context_.options.quick ? 40 : 200); ++turn) {
      pause_ms(context_.options.rounds.pause_ms);
      Life life = client_.whole_life();
      create.samples.push_back(life.create);
      whole.samples.push_back(life.counted());
    }
  }

  void watch_idle() {
    pause_ms(kSettleMs);
    auto look = [&] {
      std::map<pid_t, ProcessLook> out;
      auto all = traces_of(daemon_).children;
      all.push_back(daemon_.serve());
      all.push_back(daemon_.launcher());
      for (pid_t pid : all) out[pid] = look_at(pid);
      return out;
    };
    auto first = look();
    auto start = Clock::now();
    MachineCpu before = machine_cpu();
    pause_ms(context_.options.idle_seconds * 1e3);
    MachineCpu after = machine_cpu();
    auto second = look();
    double seconds = seconds_since(start), cpu = 0, switches = 0;
    for (const auto& [pid, now] : second)
      if (auto at = first.find(pid); at != first.end()) {
        cpu += now.cpu_seconds - at->second.cpu_seconds;
        switches += static_cast<double>(now.switches - at->second.switches);
      }
    Row& row = context_.rows.value(kGroup, idle_row(count_), "%", 100 * cpu / seconds);
    row.is_ours = true;
    row.extra = {{"wake-ups/s", switches / seconds},
                 {"seconds", seconds},
                 {"processes", static_cast<double>(second.size())},
                 {"all_of_the_machine_%", 100 * (after.busy - before.busy) / context_.options.idle_seconds}};
  }

  void delete_all() {
    auto start = Clock::now();
    LoadResult gone = run_load(deletes(daemon_.tcp(), kConnections, ids_));
    Row& deleted = value("deleted through the API, 8 connections", "s", gone.seconds);
    deleted.extra = {{"errors", static_cast<double>(gone.errors)}};
    deleted.note = gone.first_error;
    Traces alive = traces_;
    alive.groups = ~std::size_t{0};  // groups without anybody in them may be a reserve
    wait_for(start, alive, kGoneSeconds);
    value("no process, namespace or socket of theirs left", "s", seconds_since(start));
    Traces left = wait_for(start, traces_, context_.options.quick ? 2 : kGoneSeconds);
    Row& row = context_.rows.ours(kGroup, gone_row(count_));
    row.unit = "s";
    if (!left.more_than(traces_))
      row.value = seconds_since(start);
    else
      row.unusable = (context_.options.quick ? "a quick run waits 2 s; " : "") + left.compared_with(traces_);
  }

  // Until there is no more than that, or `seconds` have passed since `start`. Looking takes a good part of a second while there are tens of
  // thousands of groups, on processors that have better to do: most of the time it does not look.
  Traces wait_for(Clock::time_point start, const Traces& wanted, double seconds) {
    while (true) {
      auto began = Clock::now();
      Traces left = traces_of(daemon_);
      if (!left.more_than(wanted) || seconds_since(start) >= seconds) return left;
      pause_ms(std::max(20.0, 2e3 * seconds_since(began)));
    }
  }

  Context& context_;
  int count_;
  Daemon& daemon_;
  Client client_;
  Memory before_;
  Traces traces_;
  std::vector<std::string> ids_;
};

void measure(Context& context, int count) {
  std::string yaml = Daemon::accepts(context.build, context.work, kPartsYaml) ? kPartsYaml : "", instance;
  try {
    Daemon daemon(context.build, context.work, "density" + std::to_string(count), yaml);
    instance = daemon.instance();
    daemon.start();
    Density(context, count, daemon).run();
  } catch (const std::exception& error) {
    context.rows.ours(kGroup, counted(count, "this part of the run")).unusable = first_line(error.what());
  }
  Row& left = context.rows.value(kGroup, counted(count, "left behind after the daemon ended"), "", static_cast<double>(left_of(instance)));
  left.is_ours = true;
  left.note = "processes, cgroups and folders";
}

}  // namespace

std::string memory_row(int count) { return counted(count, "memory of each"); }
std::string create_row(int count) { return counted(count, "one more, create"); }
std::string idle_row(int count) { return counted(count, "cpu of serve, launcher and all execds"); }
std::string gone_row(int count) { return counted(count, "deleted and nothing left, groups in reserve too"); }

void measure_density(Context& context) {
  auto counts = context.options.density;
  std::ranges::sort(counts);
  for (int count : counts) measure(context, count);
}

}  // namespace bench
