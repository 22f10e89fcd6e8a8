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
#include "peers.h"
#include "publish.h"
#include "report.h"
#include "startup.h"
#include "throughput.h"
#include "transfer.h"

namespace bench {
namespace {

// What takes long says that it has begun; standard output is for the result.
void tell(const char* what) { std::cerr << "bench: " << what << std::endl; }

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
  tell(floor_only ? "the floor" : "rounds of lifecycle, exec and peers");
  if (floor_only) settings.rounds = std::min(settings.rounds, 50);
  run_rounds(context.rows, settings);
}

void measure(Context& context) {
  std::unique_ptr<Docker> docker;
  if (context.options.wants("peers") || context.options.wants("throughput")) docker = std::make_unique<Docker>(context);
  take_turns(context, docker.get());
  if (context.options.wants("throughput")) {
    tell("throughput");
    Throughput(context, docker.get()).run();
  }
  docker.reset();
  if (context.options.wants("startup")) tell("start-up"), measure_startup(context);
  if (context.options.wants("transfer")) tell("transfer"), measure_transfer(context);
  if (context.options.wants("density")) tell("density"), measure_density(context);  // last: see density.h
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
  Surroundings around;
  try {
    around = Surroundings::now(build);
    measure(context);
  } catch (const Interrupted&) {
    std::cerr << "bench: interrupted; everything it started is gone\n";
    return 130;
  }
  Report report = Report::of(context, std::move(around));
  if (!options.out.empty()) write_folder(report, options.out);
  if (options.write_docs) write_docs(report, root);
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
