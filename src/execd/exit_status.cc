#include "execd/exit_status.h"

#include <string.h>

#include "base/text.h"

namespace osb::execd {

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::exited: return "exited";
    case Cause::signalled: return "signalled";
    case Cause::timed_out: return "timed_out";
    case Cause::out_of_memory: return "out_of_memory";
    case Cause::not_found: return "not_found";
    case Cause::not_started: return "not_started";
  }
  return "exited";
}

bool failed(const ExitStatus& status) { return status.cause != Cause::exited || status.code != 0 || status.interrupted; }

int wire_code(const ExitStatus& status) { return status.cause == Cause::timed_out ? -1 : status.code; }

namespace {

std::string name_of_signal(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation ? cat("SIG", abbreviation) : cat("signal ", signal);
}

}  // namespace

std::string describe(const ExitStatus& status) {
  if (status.cause == Cause::timed_out) return "timed out and was killed";
  if (status.cause == Cause::out_of_memory) return cat("killed by the kernel for lack of memory (exit status ", status.code, ")");
  if (status.signal != 0) return cat("killed by signal ", status.signal, " (", name_of_signal(status.signal), ")");
  if (status.interrupted) return cat("interrupted; exit status ", status.code);
  return cat("exit status ", status.code);
}

std::string_view advise(const ExitStatus& status) {
  switch (status.cause) {
    case Cause::timed_out: return "Give the command a longer timeout, or run it in the background and read its logs.";
    case Cause::out_of_memory:
      return "The sandbox reached its memory limit: use less memory or create it with a higher resourceLimits.memory.";
    case Cause::not_found: return "No such program in the sandbox: check the name and PATH, or install it in the image.";
    case Cause::not_started: return "Too many processes or too little memory in the sandbox: end some, or raise its limits.";
    case Cause::signalled:
      if (status.interrupted) return "The command was interrupted on request.";
      if (status.signal == 31) return "The program made a system call the sandbox does not allow.";
      return {};
    case Cause::exited:
      if (status.code == 126) return "The file was found but cannot be executed: check its mode and its format.";
      return {};
  }
  return {};
}

}  // namespace osb::execd
