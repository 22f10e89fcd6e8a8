#include "launch/start_up.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "sys/pipe.h"

namespace osb::launch {

void ignore_signals_of_others() {
  for (int signal : {SIGPIPE, SIGHUP, SIGINT}) ::signal(signal, SIG_IGN);
}

Fd go_to_background() {
  auto ready = sys::make_pipe();
  if (!ready) ::_exit(1);
  if (pid_t child = ::fork(); child != 0) {
    ready->write.reset();
    char answer = 1;
    ::_exit(child > 0 && ::read(ready->read.get(), &answer, 1) == 1 ? answer : 1);
  }
  ::setsid();
  return std::move(ready->write);
}

void say_started(Fd waiting, const std::string& log_file) {
  char good = 0;
  [[maybe_unused]] auto n = ::write(waiting.get(), &good, 1);
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Fd log(log_file.empty() ? -1 : ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ::dup2(null.get(), 0);
  ::dup2(null.get(), 1);
  ::dup2(log ? log.get() : null.get(), 2);
}

int tell_failure(const char* program, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", program, error.what().c_str());
  if (!error.hint().empty()) std::fprintf(stderr, "hint: %s\n", error.hint().c_str());
  return 1;
}

}  // namespace osb::launch
