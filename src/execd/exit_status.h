// How a program ended, in words and numbers. The facts come only from waitid(2) and from what execd itself did to it.
#pragma once
#include <string>
#include <string_view>

namespace osb::execd {

enum class Cause {
  exited,
  signalled,
  timed_out,
  out_of_memory,
  not_found,    // the shell's 127, or no such program
  not_started,  // the kernel refused to make the process
};

struct ExitStatus {
  Cause cause = Cause::exited;
  int code = 0;    // 0..255 as exited; 128 + signal when a signal ended it
  int signal = 0;  // 0 = none
  // Ended on request: never reported as a success, whatever the program made of the signal.
  bool interrupted = false;
};

std::string_view name_of(Cause cause);
bool failed(const ExitStatus& status);
// The number clients of the command protocol read: -1 for a timeout, else the code.
int wire_code(const ExitStatus& status);
// "exit status 3", "killed by signal 9 (SIGKILL)", ...
std::string describe(const ExitStatus& status);
// One sentence that helps; empty when there is nothing to add.
std::string_view advise(const ExitStatus& status);

}  // namespace osb::execd
