#include "cli/app.h"

#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/help.h"
#include "cli/parse.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

// A standard descriptor that was closed must not become the number of a socket of ours. What stands in for it fails as
// a closed one would: stdin cannot be read, stdout and stderr cannot be written.
void occupy_standard_descriptors() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    int opened = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest free number, which is fd
    if (opened >= 0 && opened != fd) ::close(opened);
  }
}

int show(const std::string& text) { return print(text) ? kExitOk : kExitFailure; }

int fail(const Error& error, const CommandSpec* command) {
  complain(error);
  return exit_status_for(error, command);
}

}  // namespace

int exit_status_for(const Error& error, const CommandSpec* command) {
  if (is_usage_error(error)) return kExitUsage;
  if (error.kind() == Errc::unauthenticated) return kExitAuth;
  return command == &kRun || command == &kExec || command == &kShell ? kExitOurs : kExitFailure;
}

int run_program(std::span<const std::string> words, Result<int> (*serve)(const Args&)) {
  occupy_standard_descriptors();
  if (words.empty()) {
    write_all(2, help_overview());
    return kExitUsage;
  }
  auto parsed = parse(words);
  if (!parsed) return fail(parsed.error(), nullptr);
  if (parsed->wants_help) return show(parsed->command == nullptr ? help_overview() : help_of(*parsed->command));
  if (parsed->args.has("no-color")) never_colour();
  auto main = serve != nullptr && parsed->command == &kServe ? serve : parsed->command->main;
  auto status = main(parsed->args);
  if (!status) return fail(status.error(), parsed->command);
  return *status;
}

}  // namespace osb::cli
