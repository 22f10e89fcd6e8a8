#include "cli/completion.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <set>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/help.h"

namespace osb::cli {
namespace {

// What bash offers for a line, with the script loaded in a clean bash.
std::string offered(const std::string& words, int position) {
  auto script =
      cat(bash_completion(), "\nCOMP_WORDS=(", words, ")\nCOMP_CWORD=", position, "\n_opensandbox\nprintf '%s ' \"${COMPREPLY[@]}\"\n");
  char path[] = "/tmp/osb-completion-XXXXXX";
  int fd = ::mkstemp(path);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(::write(fd, script.data(), script.size()), static_cast<ssize_t>(script.size()));
  ::close(fd);
  std::string out;
  FILE* shell = ::popen(cat("bash --norc --noprofile ", path, " 2>&1").c_str(), "r");
  char bytes[4096];
  for (std::size_t n; (n = ::fread(bytes, 1, sizeof bytes, shell)) > 0;) out.append(bytes, n);
  EXPECT_EQ(::pclose(shell), 0) << out;
  ::unlink(path);
  return out;
}

TEST(Completion, OffersCommandsOptionsAndChoices) {
  EXPECT_EQ(offered("opensandbox ins", 1), "inspect ");
  EXPECT_EQ(offered("opensandbox image im", 2), "import ");
  EXPECT_EQ(offered("opensandbox run --mem", 2), "--memory ");
  EXPECT_EQ(offered("opensandbox run --mode ''", 3), "user root ");
  EXPECT_EQ(offered("opensandbox daemon status -o j", 4), "json ");
  EXPECT_EQ(offered("opensandbox completion z", 2), "zsh ");
}

TEST(Completion, KnowsEveryCommandInEveryShell) {
  for (const CommandSpec* command : commands()) {
    auto last = std::string(command->name.substr(command->name.rfind(' ') + 1));
    EXPECT_TRUE(bash_completion().contains(cat("'", command->name, "')"))) << command->name;
    EXPECT_TRUE(zsh_completion().contains(cat("'", command->name, "')"))) << command->name;
    EXPECT_TRUE(fish_completion().contains(cat("__fish_seen_subcommand_from ", last))) << command->name;
  }
}

TEST(Completion, HidesWhatIsOursAlone) {
  EXPECT_FALSE(bash_completion().contains("--ready-fd"));
  EXPECT_FALSE(help_of(kServe).contains("--ready-fd"));
}

TEST(Help, NamesEveryCommandAndEveryOption) {
  for (const CommandSpec* command : commands()) {
    EXPECT_TRUE(help_overview().contains(cat("  ", command->name, " "))) << command->name;
    EXPECT_FALSE(command->summary.empty()) << command->name;
    EXPECT_FALSE(command->examples.empty()) << command->name;
    for (const auto& option : options_of(*command)) {
      EXPECT_FALSE(option.help.empty()) << command->name << " " << option.flags;
      if (!option.hidden) EXPECT_TRUE(help_of(*command).contains(cat("--", option.long_name()))) << option.flags;
    }
  }
}

TEST(Help, HasNoOptionTwice) {
  for (const CommandSpec* command : commands()) {
    std::set<std::string_view> longs, shorts;
    for (const auto& option : options_of(*command)) {
      EXPECT_TRUE(longs.insert(option.long_name()).second) << command->name << " --" << option.long_name();
      if (!option.short_name().empty())
        EXPECT_TRUE(shorts.insert(option.short_name()).second) << command->name << " -" << option.short_name();
    }
  }
}

}  // namespace
}  // namespace osb::cli
