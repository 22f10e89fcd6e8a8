// Setup: what this sandbox is, told once at start. Requests are judged and completed against it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "execd/accounts.h"
#include "execd/environment.h"

namespace osb::execd {

inline constexpr std::uint16_t kPort = 44772;
inline constexpr std::uint32_t kAgentUid = 65533;  // execd's own inside a native sandbox

struct Setup {
  bool native = false;                  // pid 1 of a native sandbox: identities and capabilities are set for each program
  Env env;                              // base of every environment
  std::vector<std::string> entrypoint;  // empty: nothing to start
  std::string cwd = "/";
  std::string home;
  Identity who;              // the sandbox's own user; elsewhere execd's
  bool keep_caps = false;    // native only: root mode
  bool one_user = false;     // native only: execd and programs are the same user and nobody can become another
  std::string access_token;  // empty: none is asked for
};

// Whom a program must become first; nobody where it is the right user already.
inline const Identity* becomes(const Setup& setup) { return setup.native && !setup.one_user ? &setup.who : nullptr; }

// The set-up text of a native sandbox. Members that are not known are ignored; wrong types are errors.
Result<Setup> parse_setup(std::string_view json);
// The set-up of a claim, complete. Whom programs run as is settled by then: another user or other privileges are an error.
Result<Setup> claimed_setup(const Setup& before, std::string_view json);
// Looks up the account, fills in what the environment lacks and drops an entrypoint that only waits.
void complete_setup(Setup& setup);
// ["tail","-f","/dev/null"], ["sleep","infinity"] and []: execd holds the sandbox open by itself.
bool only_waits(const std::vector<std::string>& entrypoint);

}  // namespace osb::execd
