#include "interrupt.h"

#include <signal.h>
#include <time.h>

#include <atomic>

namespace bench {
namespace {

std::atomic<bool> came = false;

}  // namespace

void catch_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) { came = true; };
  action.sa_flags = SA_RESTART;  // a peer's short command is waited for; what waits with poll is woken all the same
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return came; }

void check_interrupted() {
  if (came) throw Interrupted{};
}

void pause_ms(double ms) {
  check_interrupted();
  if (ms <= 0) return;
  auto nanos = static_cast<long>(ms * 1e6);
  timespec left{nanos / 1'000'000'000, nanos % 1'000'000'000};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, nullptr);
  check_interrupted();
}

}  // namespace bench
