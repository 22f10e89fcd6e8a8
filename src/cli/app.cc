#include "cli/app.h"

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/help.h"
#include "cli/parse.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

int show(const std::string& text) { return print(text) ? kExitOk : kExitFailure; }

int fail(const Error& error, const CommandSpec* command) {
  complain(error);
  return exit_status_for(error, command);
}

}  // namespace

int exit_status_for(const Error& error, const CommandSpec* command) {
  if (is_usage_error(error)) return kExitUsage;
  if (error.kind() == Errc::unauthenticated) return kExitAuth;
  return command == &kRun || command == &kExec ? kExitOurs : kExitFailure;
}

int run_program(std::span<const std::string> words, Result<int> (*serve)(const Args&)) {
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
