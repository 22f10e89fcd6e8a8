#include "startup.h"

#include <stdexcept>

#include "interrupt.h"
#include "machine.h"

namespace bench {
namespace {

constexpr const char* kGroup = "startup";

void measure_idle(Context& context, const Daemon& daemon) {
  pid_t serve = daemon.serve(), launcher = daemon.launcher();
  ProcessLook serve_before = look_at(serve), launch_before = look_at(launcher);
  auto start = Clock::now();
  pause_ms(context.options.idle_seconds * 1e3);
  double seconds = seconds_since(start);
  ProcessLook serve_after = look_at(serve), launch_after = look_at(launcher);
  double spent = serve_after.cpu_seconds - serve_before.cpu_seconds + launch_after.cpu_seconds - launch_before.cpu_seconds;
  Row& memory = context.rows.value(kGroup, kDaemonMemory, "MiB", (serve_after.rss_kib + launch_after.rss_kib) / 1024);
  memory.extra = {{"serve_MiB", serve_after.rss_kib / 1024}, {"launcher_MiB", launch_after.rss_kib / 1024}};
  Row& cpu = context.rows.value(kGroup, "serve and launcher, idle: cpu", "%", 100 * spent / seconds);
  cpu.extra = {
      {"wake-ups/s",
       static_cast<double>(serve_after.switches - serve_before.switches + launch_after.switches - launch_before.switches) / seconds},
      {"seconds", seconds}};
  memory.is_ours = cpu.is_ours = true;
}

}  // namespace

void measure_startup(Context& context) {
  Row& fresh = context.rows.ours(kGroup, "start to the first answer, nothing there yet");
  Row& again = context.rows.ours(kGroup, "start to the first answer, state of before");
  Row& hello = context.rows.ours(kGroup, "start to the first hello from a sandbox");
  int turns = context.options.quick ? 3 : 10;
  try {
    for (int turn = 0; turn < turns; ++turn) {
      Daemon daemon(context.build, context.work, "startup" + std::to_string(turn));
      auto at = Clock::now();
      fresh.samples.push_back(daemon.start());
      Client(daemon.tcp()).whole_life();
      hello.samples.push_back(micros_since(at));
      daemon.stop();
      again.samples.push_back(daemon.start());
      if (turn + 1 == turns) measure_idle(context, daemon);
    }
  } catch (const std::exception& error) {
    fresh.unusable = again.unusable = hello.unusable = first_line(error.what());
  }
}

}  // namespace bench
