// The environment of programs, and what "~" and "$NAME" in a path mean.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "execd/accounts.h"

namespace osb::execd {

using Env = std::map<std::string, std::string, std::less<>>;

inline constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
inline constexpr std::size_t kMaxEnvFile = 64 * 1024;

// A name without '=' and NUL, a value without NUL: what execve(2) can carry.
Result<> check_variable(std::string_view name, std::string_view value);

// Fills in PATH, UTF-8 as the character set, SHLVL and, from the account, HOME, USER, LOGNAME and SHELL where `env` says nothing.
void add_defaults(Env& env, const Identity& who, std::string_view home);
// HOME, USER and LOGNAME of another user than the sandbox's own.
void become(Env& env, const Identity& who);
// "NAME=value" a line, "#" comments; "$NAME" in values is looked up in `env` as it stands; anything else is skipped.
void overlay_file_text(Env& env, std::string_view text);

std::string_view value_of(const Env& env, std::string_view name);

// One program's own variables over those of its sandbox, seen as one environment. Both outlive it.
class Variables {
 public:
  Variables(const Env& own, const Env* base = nullptr) : own_(own), base_(base) {}  // NOLINT(google-explicit-constructor)

  const std::string* find(std::string_view name) const;
  bool has_prefix(std::string_view prefix) const;  // whether any name begins with it
  // Calls visit(name, value) once for each name.
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [name, value] : own_) visit(name, value);
    if (!base_) return;
    for (const auto& [name, value] : *base_)
      if (own_.empty() || !own_.contains(name)) visit(name, value);
  }
  Env whole() const;

 private:
  const Env& own_;
  const Env* base_;
};

// "$NAME" and "${NAME}"; a '$' before anything else stays. An unknown name is Errc::invalid_argument.
Result<std::string> expand_variables(std::string_view text, const Env& env);
// Also a leading "~" or "~/"; a relative path begins at `base`.
Result<std::string> expand_path(std::string_view path, const Env& env, std::string_view home, std::string_view base);

}  // namespace osb::execd
