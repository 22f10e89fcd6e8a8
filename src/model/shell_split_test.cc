#include "model/shell_split.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "model/command_wrappers.h"

namespace osb {
namespace {

// Programs and arguments of every command, "…" where they are not known, one a line.
std::string seen(const ShellCommands& commands) {
  std::string out;
  for (const auto& command : commands.all()) out += cat(out.empty() ? "" : "\n", command.shown());
  return out;
}
std::string split_of(std::string_view line) {
  ShellCommands out;
  split_shell(line, 0, out);
  return seen(out);
}
std::string opened(std::string_view line) { return seen(commands_of_line(line)); }
bool unknown_in(std::string_view line) {
  for (const auto& command : commands_of_line(line).all())
    if (!command.words.front().exact()) return true;
  return false;
}

TEST(ShellSplit, FindsEveryCommandOfAList) {
  EXPECT_EQ(split_of("a 1 | b 2 && c || d; e & f\ng"), "a 1\nb 2\nc\nd\ne\nf\ng");
  EXPECT_EQ(split_of("a|&b"), "a\nb");
  EXPECT_EQ(split_of("(a; b) && { c; d; }"), "a\nb\nc\nd");
  EXPECT_EQ(split_of("! a; time b; time -p c"), "a\nb\nc");
  EXPECT_EQ(split_of("X=1 Y=$(z) a b"), "z\na b");
  EXPECT_EQ(split_of("A=(1 $(b) 3) c"), "b\nc");
  EXPECT_EQ(split_of(""), "");
  EXPECT_EQ(split_of("  # only a comment"), "");
  EXPECT_EQ(split_of("a # b\nc"), "a\nc");
  EXPECT_EQ(split_of("a#b"), "a#b");
}

TEST(ShellSplit, ReadsWordsAsAShellDoes) {
  EXPECT_EQ(split_of("\\rm x"), "rm x");
  EXPECT_EQ(split_of("r''m \"x\"'y'"), "rm xy");
  EXPECT_EQ(split_of("r\\\nm x"), "rm x");
  EXPECT_EQ(split_of("'rm' \"a b\" c\\ d"), "rm a b c d");
  EXPECT_EQ(split_of("$'\\x72\\155' $'a\\tb'"), "rm a\tb");
  EXPECT_EQ(split_of("echo \"\\$x \\\\ \\a\""), "echo $x \\ \\a");
  EXPECT_EQ(split_of("[ -f x ]"), "[ -f x ]");
  EXPECT_EQ(split_of("find . {} \\;"), "find . {} ;");
  EXPECT_EQ(split_of("a\trm\xC2\xA0x"), "a rm\xC2\xA0x");  // no shell takes U+00A0 for a blank
  EXPECT_EQ(split_of("rm\r"), "rm\r");
}

TEST(ShellSplit, MarksWhatOnlyTheRunningShellKnows) {
  EXPECT_EQ(split_of("$X a"), "… a");
  EXPECT_EQ(split_of("a $X \"b$X\" \"${X}c\" d*e ~/f"), "a … b… …c d…e …/f");
  EXPECT_EQ(split_of("{rm,-rf,/}"), "…");
  EXPECT_EQ(split_of("a -{r,f}"), "a …");
  EXPECT_EQ(split_of("/bin/r?"), "/bin/r…");
  EXPECT_EQ(split_of("\"$@\""), "…");
  EXPECT_EQ(split_of("echo a$"), "echo a$");
}

TEST(ShellSplit, LooksIntoSubstitutions) {
  EXPECT_EQ(split_of("echo $(a $(b))"), "b\na …\necho …");
  EXPECT_EQ(split_of("echo \"x $(a \"b c\") `d`\""), "a b c\nd\necho x …");
  EXPECT_EQ(split_of("echo `a \\`b\\``"), "b\na …\necho …");
  EXPECT_EQ(split_of("diff <(a) >(b)"), "a\nb\ndiff … …");
  EXPECT_EQ(split_of("echo ${X:-$(a)} ${Y/`b`/}"), "a\nb\necho … …");
  EXPECT_EQ(split_of("echo $((1 + $(a)))"), "a\necho …");
  EXPECT_EQ(split_of("a > $(b) 2>&1 < \"$(c)\""), "b\nc\na");
  EXPECT_EQ(split_of("echo '$(a)'"), "echo $(a)");
}

TEST(ShellSplit, ReadsCompoundCommands) {
  EXPECT_EQ(split_of("if a; then b; elif c; then d; else e; fi > f"), "a\nb\nc\nd\ne");
  EXPECT_EQ(split_of("while a; do b; done; until c\ndo d\ndone"), "a\nb\nc\nd");
  EXPECT_EQ(split_of("for x in 1 $(a) 3; do b $x; done"), "a\nb …");
  EXPECT_EQ(split_of("for ((i=0; i<3; i++)); do b; done"), "b");
  EXPECT_EQ(split_of("case $x in a|b) c;; (d) e ;& *) f; esac; g"), "c\ne\nf\ng");
  EXPECT_EQ(split_of("f() { a; }; function g { b; }; function h() (c)"), "a\nb\nc");
  EXPECT_EQ(split_of("[[ $x == y && -f z ]] && a"), "a");
  EXPECT_EQ(split_of("[[ a || rm x ]]"), "a\nrm x");  // what a shell without [[ would run
  EXPECT_EQ(split_of("((rm -rf x))"), "rm -rf x");
  EXPECT_EQ(split_of("a &> f rm x"), "rm x\na rm x");
}

TEST(ShellSplit, PassesOverHereDocumentsAndLooksIntoThem) {
  EXPECT_EQ(split_of("cat <<EOF\nrm x $(a)\nEOF\nb"), "cat\na\nb");
  EXPECT_EQ(split_of("cat <<'EOF' && c\nrm x $(a)\nEOF\nb"), "cat\nc\nb");
  EXPECT_EQ(split_of("cat <<-E\n\tx\n\tE\nb"), "cat\nb");
  EXPECT_EQ(split_of("cat <<A <<B\n1\nA\n2\nB\nc"), "cat\nc");
  EXPECT_EQ(split_of("cat <<< $(a)"), "a\ncat");
}

TEST(ShellSplit, SaysWhenItCannotRead) {
  for (std::string_view line :
       {"a 'b", "a \"b", "a `b", "a $(b", "(a", "a)", "case x in a) b", "a ${b", "echo $'\\'; rm x #'", "coproc X { rm; }", "a <",
        "$((rm) )", "cat <<EOF\nx", "echo ${X@P}", "a ;; b", "a(b c)", "BASH_ENV=x sh y", "((a) b"})
    EXPECT_TRUE(unknown_in(line)) << line;
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "$(";
  EXPECT_TRUE(unknown_in(deep));
  std::string many;
  for (std::size_t i = 0; i < kMaxShellCommands + 10; ++i) many += "a;";
  EXPECT_TRUE(unknown_in(many));
  EXPECT_TRUE(unknown_in(std::string(kMaxShellBytes + 1, 'a')));
  EXPECT_TRUE(unknown_in(std::string_view("a\0b", 3)));
}

TEST(Wrappers, AreOpenedOneAfterTheOther) {
  EXPECT_EQ(opened("sudo -u root -n rm -rf x"), "sudo -u root -n rm -rf x\nrm -rf x");
  EXPECT_EQ(opened("env -i A=1 B=2 rm x"), "env -i A=1 B=2 rm x\nrm x");
  EXPECT_EQ(opened("timeout -k 5 10 nice -n 5 nohup rm x"), "timeout -k 5 10 nice -n 5 nohup rm x\nnice -n 5 nohup rm x\nnohup rm x\nrm x");
  EXPECT_EQ(opened("command rm x"), "command rm x\nrm x");
  EXPECT_EQ(opened("command -v rm"), "command -v rm");
  EXPECT_EQ(opened("exec -a y rm x"), "exec -a y rm x\nrm x");
  EXPECT_EQ(opened("busybox rm x"), "busybox rm x\nrm x");
  EXPECT_EQ(opened("sh -c 'rm x; ls'"), "sh -c rm x; ls\nrm x\nls");
  EXPECT_EQ(opened("bash -lc \"rm x\" name"), "bash -lc rm x name\nrm x");
  EXPECT_EQ(opened("bash -o pipefail -c 'rm x'"), "bash -o pipefail -c rm x\nrm x");
  EXPECT_EQ(opened("sh -c \"sh -c 'rm x'\""), "sh -c sh -c 'rm x'\nsh -c rm x\nrm x");
  EXPECT_EQ(opened("eval rm 'a; b'"), "eval rm a; b\nrm a\nb");
  EXPECT_EQ(opened("trap 'rm x' EXIT"), "trap rm x EXIT\nrm x");
  EXPECT_EQ(opened("find . -name y -exec rm -f {} \\; -o -execdir ls +"), "find . -name y -exec rm -f {} ; -o -execdir ls +\nrm -f …\nls");
  EXPECT_EQ(opened("ls | xargs -n 1 -I{} rm {}"), "ls\nxargs -n 1 -I{} rm {}\nrm … …");
  EXPECT_EQ(opened("xargs rm"), "xargs rm\nrm …");
  EXPECT_EQ(opened("su root -c 'rm x'"), "su root -c rm x\nrm x");
  EXPECT_EQ(opened("flock /tmp/l -c 'rm x'"), "flock /tmp/l -c rm x\nrm x");
  EXPECT_EQ(opened("watch -n 1 rm x"), "watch -n 1 rm x\nrm x");
  EXPECT_EQ(opened("bash script.sh a"), "bash script.sh a");
}

TEST(Wrappers, SayWhenWhatTheyRunIsNotKnown) {
  for (std::string_view line : {"bash",
                                "sh -s",
                                "echo rm x | sh",
                                "bash <<EOF\nrm x\nEOF",
                                "bash -c \"$X\"",
                                "bash $X",
                                "eval \"$X\"",
                                "eval $(cat y)",
                                "sudo -i",
                                "sudo $X",
                                "xargs $X",
                                "env -S 'rm x'",
                                "parallel rm",
                                "$(which rm) x",
                                "`which rm` x",
                                "sudo --unknown-but-short -Z rm",
                                "alias ls=rm",
                                "su",
                                "export BASH_ENV=/x",
                                "find . $X",
                                "trap \"$X\" EXIT",
                                "xargs -I{} {}",
                                "bash --rcfile x",
                                "env LD_PRELOAD=x ls",
                                "bash -i"})
    EXPECT_TRUE(unknown_in(line)) << line;
  for (std::string_view line :
       {"bash x.sh", "find . -name '*.py'", "xargs", "env", "sudo ls", "trap - EXIT", "alias", "export A=1", "ls $HOME", "bash --version"})
    EXPECT_FALSE(unknown_in(line)) << line;
}

TEST(Wrappers, StayLinearOnChains) {
  std::string chain;
  for (int i = 0; i < 20'000; ++i) chain += "env ";
  EXPECT_TRUE(unknown_in(chain + "rm"));  // deeper than anybody means it
}

}  // namespace
}  // namespace osb
