#include "throughput.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "interrupt.h"
#include "lifecycle.h"
#include "machine.h"
#include "traces.h"

namespace bench {
namespace {

constexpr const char* kGroup = "throughput";
constexpr double kDrainMs = 200;  // what was deleted last is still being taken apart

// In a child: nothing may be thrown past this, or it would clean up what is its parent's.
int spawn_until(Clock::time_point start, double seconds, int answer) {
  long done = 0;
  try {
    for (; seconds_since(start) < seconds && !interrupted(); ++done) time_hello({"/bin/busybox", "echo", "hello"});
  } catch (...) {
    return 1;
  }
  return ::write(answer, &done, sizeof done) == sizeof done ? 0 : 1;
}

// One process for each core, so that they share no address space and no table of descriptors.
double bare_spawns(double seconds) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  auto start = Clock::now();
  std::vector<pid_t> workers;
  for (int index = 0; index < cores(); ++index) {
    pid_t pid = ::fork();
    if (pid == 0) ::_exit(spawn_until(start, seconds, ends[1]));
    workers.push_back(pid);
  }
  ::close(ends[1]);
  long sum = 0;
  for (long done = 0; ::read(ends[0], &done, sizeof done) == sizeof done;) sum += done;
  double took = seconds_since(start);
  for (pid_t pid : workers) ::waitpid(pid, nullptr, 0);
  ::close(ends[0]);
  check_interrupted();
  return static_cast<double>(sum) / took;
}

std::string count_of(int clients) { return std::to_string(clients) + (clients == 1 ? " client" : " clients"); }

}  // namespace

std::string lives_row(int clients) { return "lifecycles, " + count_of(clients); }

void Throughput::run() {
  measure_floor();
  with_defaults();
  with_pool_off();
  measure_docker();
}

void Throughput::measure_floor() {
  floor_ = bare_spawns(std::min(context_.options.seconds, 3.0));
  context_.rows.value(kGroup, kSpawnRate, "1/s", floor_).ratio_to = floor_;
}

bool Throughput::started(Daemon& daemon, const std::string& name) {
  try {
    daemon.start();
    Client client(daemon.tcp());
    for (int turn = 0; turn < 20; ++turn) client.whole_life();
    pause_ms(kDrainMs);
    return true;
  } catch (const std::exception& error) {
    context_.rows.ours(kGroup, name).unusable = first_line(error.what());
    return false;
  }
}

void Throughput::with_defaults() {
  std::string instance;
  {
    Daemon daemon(context_.build, context_.work, "throughput");
    instance = daemon.instance();
    if (!started(daemon, lives_row(8))) return;
    measure_ours(daemon);
  }
  Row& left = context_.rows.value(kGroup, "left behind after the daemon ended", "", static_cast<double>(left_of(instance)));
  left.is_ours = true;
  left.note = "processes, cgroups and folders";
}

void Throughput::measure_ours(const Daemon& daemon) {
  for (int clients : {1, 2, 4, 8, 32}) lives(lives_row(clients), daemon, daemon.tcp(), clients, context_.options.seconds);
  lives("lifecycles, 8 clients, unix socket", daemon, daemon.by_socket(), 8, context_.options.seconds);
  if (double seconds = context_.options.sustain; seconds > 0)
    lives(kSustained + std::to_string(static_cast<int>(seconds)) + " s", daemon, daemon.tcp(), 8, seconds);
  for (int clients : {1, 8, 32}) execs(daemon.tcp(), clients);
}

void Throughput::with_pool_off() {
  std::string why;
  if (!Daemon::accepts(context_.build, context_.work, kPartsYaml, &why)) {
    context_.rows.ours(kGroup, kPoolOffRate).unusable = why;
    return;
  }
  Daemon daemon(context_.build, context_.work, "throughput-off", kPartsYaml);
  if (!started(daemon, kPoolOffRate)) return;
  lives(kPoolOffRate, daemon, daemon.tcp(), 8, context_.options.seconds);
  if (context_.options.quick) return;
  for (int clients : {1, 32})
    lives(lives_row(clients) + ", pool.automatic: false", daemon, daemon.tcp(), clients, context_.options.seconds);
}

void Throughput::lives(const std::string& name, const Daemon& daemon, const Server& server, int clients, double seconds) {
  pause_ms(kDrainMs);
  try {
    double serve = look_at(daemon.serve()).cpu_seconds, launcher = look_at(daemon.launcher()).cpu_seconds;
    LoadResult result = run_load(whole_lives(server, static_cast<std::size_t>(clients), seconds));
    serve = look_at(daemon.serve()).cpu_seconds - serve;
    launcher = look_at(daemon.launcher()).cpu_seconds - launcher;
    Row& row = record(name, result);
    row.extra.emplace_back("serve_cpu_%", 100 * serve / result.seconds / cores());
    row.extra.emplace_back("launcher_cpu_%", 100 * launcher / result.seconds / cores());
  } catch (const std::exception& error) {
    context_.rows.ours(kGroup, name).unusable = first_line(error.what());
  }
}

void Throughput::execs(const Server& server, int clients) {
  std::string name = "commands, " + count_of(clients) + ", a sandbox each";
  try {
    Client client(server);
    std::vector<Door> doors;
    for (int index = 0; index < clients; ++index) doors.push_back(client.door(client.create()));
    pause_ms(kDrainMs);
    record(name, run_load(commands(server, doors, context_.options.seconds)));
    client.remove_all();
  } catch (const std::exception& error) {
    context_.rows.ours(kGroup, name).unusable = first_line(error.what());
  }
}

void Throughput::measure_docker() {
  Row& row = context_.rows.add(kGroup, kDockerRate);
  row.unit = "1/s";
  if (!docker_ || !docker_->usable()) return void(row.unusable = docker_ ? docker_->why_not() : "not installed");
  try {
    LoadResult result = run_load(docker_->lives(8, std::max(context_.options.seconds, 2.0)));
    row.value = result.rate();
    row.ratio_to = floor_;
    row.extra = {{"p50_ms", quantile(result.samples, 0.5) / 1e3},
                 {"p99_ms", quantile(result.samples, 0.99) / 1e3},
                 {"errors", static_cast<double>(result.errors)}};
    row.note = result.first_error;
  } catch (const std::exception& error) {
    row.unusable = first_line(error.what());
  }
}

Row& Throughput::record(const std::string& name, const LoadResult& result) {
  Row& row = context_.rows.value(kGroup, name, "1/s", result.rate());
  row.is_ours = true;
  row.ratio_to = floor_;
  row.extra = {{"p50_ms", quantile(result.samples, 0.5) / 1e3},   {"p99_ms", quantile(result.samples, 0.99) / 1e3},
               {"max_ms", quantile(result.samples, 1) / 1e3},     {"errors", static_cast<double>(result.errors)},
               {"generator_cpu_%", 100 * result.generator_share}, {"machine_cpu_%", 100 * result.machine_share}};
  row.note = result.first_error;
  return row;
}

}  // namespace bench
