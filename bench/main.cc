// The benchmark: the floor, our paths and the peers on this machine in one run. README.md says what is measured and how.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "density.h"
#include "docker.h"
#include "exec.h"
#include "interrupt.h"
#include "lifecycle.h"
#include "machine.h"
#include "peers.h"
#include "report.h"
#include "startup.h"
#include "throughput.h"
#include "transfer.h"

namespace bench {
namespace {

// Rows that are a latency of one client, in turn; everything they need goes away before the next part begins.
void take_turns(Context& context, Docker* docker) {
  Lifecycle lifecycle(context);
  Exec exec(context);
  Peers peers(context, docker);
  lifecycle.add_rows();
  exec.add_rows();
  peers.add_rows();
  RoundSettings settings = context.options.rounds;
  bool floor_only = !context.options.wants("lifecycle") && !context.options.wants("exec") && !context.options.wants("peers");
  if (floor_only) settings.rounds = std::min(settings.rounds, 100);
  run_rounds(context.rows, settings);
}

void measure(Context& context) {
  std::unique_ptr<Docker> docker;
  if (context.options.wants("peers") || context.options.wants("throughput")) docker = std::make_unique<Docker>(context);
  take_turns(context, docker.get());
  Throughput(context, docker.get()).run();
  docker.reset();
  measure_startup(context);
  measure_transfer(context);
  measure_density(context);  // last: see density.h
}

int run(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  const char* build = std::getenv("OSB_BUILD_DIR");
  const char* root = std::getenv("OSB_ROOT");
  if (!build || !root) die("start it with ./dev bench");
  if (::geteuid() != 0) die("needs root: sandboxes are made by a privileged launcher");
  catch_signals();
  WorkFolder work;
  Rows rows;
  Context context{options, root, build, work.path(), rows};
  std::string date = now_text();
  try {
    measure(context);
  } catch (const Interrupted&) {
    std::cerr << "bench: interrupted; everything it started is gone\n";
    return 130;
  }
  Report report = Report::of(context, date);
  std::fputs((options.json ? report.json() : report.text()).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << "\n";
    return 1;
  }
}
