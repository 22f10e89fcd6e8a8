// What execd says to the shell of a session, and how the shell answers. Text only: no processes, no descriptors.
//
// The shell reads commands from a socket that is its descriptor 0, and writes its reports to the same socket. While a
// command runs, descriptor 0 is /dev/null and the shell keeps the socket on a descriptor that closes on exec, so programs
// neither inherit it nor can open it: /proc/PID/fd leads back to a pipe or a file, but never to a socket. A report carries a
// random word made for this one run. What remains: shell code that runs in the session's own shell (the client's own
// commands, files it sources) can find the socket and lie about its status, as it can with `exit`; and where the sandbox
// allows ptrace(2) or pidfd_getfd(2), a process of the same user can make the shell do anything.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace osb::execd::shell {

// bash is interactive, without a terminal: an interrupt or an error in an expansion ends the command and not the shell.
std::vector<std::string> bash_words();
std::vector<std::string> sh_words();

std::string quote(std::string_view text);  // as one word of any shell; no zero bytes

// To a new shell, before anything else. `exports` is what an earlier shell of the session reported.
std::string opening(std::string_view exports);

struct Errand {
  std::string_view command;
  std::string_view cwd;  // empty: stays where it is
  std::string_view out;  // paths of the two fifos
  std::string_view err;
  std::string_view nonce;  // hex
};
std::string errand_text(const Errand& errand);  // with the request for the report behind it
std::string report_request(std::string_view nonce);

// A report comes in two parts. The first ends the run, and its client need not wait for the second.
struct Report {
  int status = 0;
  std::string cwd;
};
// The report with this nonce in what the shell has written so far; whatever else is there is skipped.
std::optional<Report> find_report(std::string_view written, std::string_view nonce);
// The exported variables that follow the report, as commands that set them again. Takes everything up to their end off
// the front of `written`.
std::optional<std::string> take_exports(std::string& written, std::string_view nonce);

}  // namespace osb::execd::shell
