#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/text.h"
#include "cli/doctor/probes.h"
#include "cli/runtime_choice.h"
#include "cli/spawn.h"

namespace osb::cli {
namespace {

constexpr const char* kPart = "Runtime process";

struct Said {
  bool fine = false;
  std::string why, fix;
};

// The program that would make the sandboxes tries it out itself, and says why not in two lines.
Said ask(std::string program) {
  Fd out(::memfd_create("doctor", MFD_CLOEXEC));
  char check[] = "--check";
  char* words[] = {program.data(), check, nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out.get(), 2);
  pid_t pid = 0;
  int failed = ::posix_spawn(&pid, words[0], &actions, nullptr, words, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {false, std::strerror(failed), {}};
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  char text[2048];
  auto n = ::pread(out.get(), text, sizeof text, 0);
  auto lines = split(std::string_view(text, n > 0 ? static_cast<std::size_t>(n) : 0), '\n');
  auto after = [&](std::size_t line, std::string_view prefix) {
    return line < lines.size() && lines[line].starts_with(prefix) ? std::string(lines[line].substr(prefix.size())) : std::string();
  };
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, after(0, "opensandbox-confine: "), after(1, "hint: ")};
}

}  // namespace

std::vector<Finding> probe_process(bool required) {
  auto program = program_beside("opensandbox-confine");
  Said said = program ? ask(*program) : Said{false, program.error().what(), program.error().hint()};
  if (!said.fine) return {{kPart, "sandboxes without root", Verdict::missing, required, said.why, said.fix}};
  std::vector<Finding> out{
      {kPart, "sandboxes without root", Verdict::ok, required, "this user can make them: opensandbox run --runtime process", {}}};
  for (const Gap& gap : kGapsOfProcess)
    out.push_back({kPart, std::string(gap.of), Verdict::weak, false, std::string(gap.says), "the runtime native (root) isolates this"});
  return out;
}

}  // namespace osb::cli
