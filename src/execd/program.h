// What to execute: the places where a program may be, in the order they are tried.
//
// A command of the protocol is text for a shell: `bash -c`, or `sh -c` where there is no bash. Starting bash costs
// about a millisecond, so a command that is only a list of plain words is executed directly when that gives the same
// result (plain_words says when); if that fails for any reason the shell gets the command after all.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execd/environment.h"

namespace osb::execd {

// One program to try: argv[0] itself when it has a '/', else every directory of PATH in turn (child.cc looks, between
// vfork and execve, so that nothing is put together for a place that is not needed).
struct Attempt {
  std::vector<std::string> argv;
};

// The words of `command` when a shell would do nothing but start the named program with them; empty otherwise.
//
// Only [A-Za-z0-9_@%+:,./=-] and spaces, no '=' in the first word (an assignment), and the first word is no builtin,
// keyword or reserved word of bash, dash or busybox sh and no job ("%1"). Four builtins may stand for the program of
// the same name where both do the same: `true` and `false` alone; `echo` when no argument begins with '-'; `printf`
// with exactly one argument that has no '%' and does not begin with '-'.
std::vector<std::string> plain_words(std::string_view command);
// False when variables make a shell do more than run the command, or search it elsewhere: BASH_ENV, BASH_FUNC_*,
// SHELLOPTS, BASHOPTS, EXECIGNORE, POSIXLY_CORRECT, or a PATH with an entry that is not absolute.
bool environment_is_plain(const Variables& env);

std::vector<Attempt> attempts_for_command(const std::string& command, const Variables& env);
std::vector<Attempt> attempts_for_argv(std::vector<std::string> argv);

}  // namespace osb::execd
