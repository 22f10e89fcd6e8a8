#include "execd/stem.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "enter/enter.h"
#include "enter/plan_message.h"
#include "execd/daemon.h"
#include "sys/descriptor_message.h"
#include "sys/large_segments.h"
#include "sys/raw.h"

namespace osb::execd {
namespace {

struct Request {
  char bytes[enter::kMaxPlanBytes];
  ssize_t size = 0;
  int descriptors[sys::kMostDescriptors];
  std::size_t count = 0;
};
Request request;  // of one at a time; a new process has its own copy

void receive(int socket) {
  request.size = sys::receive_with_descriptors(socket, request.bytes, sizeof request.bytes, 0, request.descriptors, request.count);
}

Result<enter::EnterPlan> read_request() {
  return enter::read_plan({request.bytes, static_cast<std::size_t>(request.size)}, request.descriptors, request.count);
}

// A sprout's. Its socket ends with the launcher, or when nobody wants it any more.
bool await_rest(enter::EnterPlan& plan) {
  receive(plan.rest);
  if (request.size <= 0) return false;
  auto whole = read_request();
  if (!whole) return false;
  plan = *std::move(whole);
  return true;
}

// Its own frame: what the plan took is free again when execd goes on, which then touches no further pages.
[[gnu::noinline]] void build_walls() {
  auto plan = read_request();
  if (!plan) ::_exit(125);
  enter::enter(*plan, await_rest);
}

[[noreturn]] void become_sandbox() {
  build_walls();
  auto start = adopt_native();
  if (!start) ::_exit(125);
  start->walled = true;
  run_daemon(*std::move(start));
}

// In its group and in its own pid, mount, ipc and uts namespaces from its first instruction. Its parent is the launcher, who
// hears of its end; the stem knows it no more.
int divide() {
  if (request.count == 0) return -EPROTO;
  clone_args args{};
  args.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PARENT | CLONE_INTO_CGROUP;
  args.cgroup = static_cast<std::uint64_t>(request.descriptors[0]);
  int child = sys::raw::clone3(args);
  return child < 0 ? -errno : child;
}

}  // namespace

void run_stem(int socket) {
  sys::map_large_segments();
  prepare_daemon();
  for (;;) {
    receive(socket);
    if (request.size == 0) ::_exit(0);
    int answer = request.size < 0 ? -errno : divide();
    if (answer == 0) {
      ::close(socket);
      become_sandbox();
    }
    for (std::size_t i = 0; i < request.count; ++i) ::close(request.descriptors[i]);
    if (request.size > 0) ::explicit_bzero(request.bytes, static_cast<std::size_t>(request.size));
    if (::write(socket, &answer, sizeof answer) != sizeof answer) ::_exit(0);
  }
}

}  // namespace osb::execd
