// The benchmark: the floor, our paths and the peers on this machine in one run. README.md says what is measured and how.
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// On a host with systemd /run is memory. Where it is a disk, the daemons of this run get what those have, in a mount namespace of our own;
// the ranges of host ids stay the ones that other daemons on this machine see.
void keep_run_root_in_memory() {
  constexpr const char* kRoot = "/run/opensandbox";
  fs::create_directories(fs::path(kRoot) / "ranges");
  struct statfs info{};
  if (::statfs(kRoot, &info) == 0 && info.f_type == TMPFS_MAGIC) return;
  bool apart = ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
  int ranges = apart ? ::open("/run/opensandbox/ranges", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  std::string from = "/proc/self/fd/" + std::to_string(ranges);
  bool done = ranges >= 0 && ::mount("tmpfs", kRoot, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") == 0 &&
              ::mkdir("/run/opensandbox/ranges", 0755) == 0 &&
              ::mount(from.c_str(), "/run/opensandbox/ranges", nullptr, MS_BIND, nullptr) == 0;
  int error = errno;
  if (ranges >= 0) ::close(ranges);
  if (!done) die(std::string("cannot keep /run/opensandbox in memory: ") + std::strerror(error));
  tell("/run is a disk here; the run directory is kept in memory for this run");
}

int run(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  const char* build = std::getenv("OSB_BUILD_DIR");
  const char* root = std::getenv("OSB_ROOT");
  if (!build || !root) die("start it with ./dev bench");
  if (::geteuid() != 0) die("needs root: sandboxes are made by a privileged launcher");
  catch_signals();
  keep_run_root_in_memory();
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
