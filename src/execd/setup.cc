#include "execd/setup.h"

#include <unistd.h>

#include "execd/json.h"

namespace osb::execd {

Result<Setup> parse_setup(std::string_view json) {
  TRY(auto object, parse_object(json));
  Setup setup;
  setup.native = true;
  TRY(setup.env, env_member(object, "env"));
  TRY(setup.entrypoint, list_member(object, "entrypoint"));
  TRY(setup.home, text_member(object, "home"));
  TRY(setup.keep_caps, flag_member(object, "keep_caps"));
  TRY(std::string cwd, text_member(object, "cwd"));
  TRY(auto uid, id_member(object, "uid"));
  TRY(auto gid, id_member(object, "gid"));
  if (!uid || !gid) return Error(Errc::malformed, "the set-up names no uid and gid");
  if (!cwd.empty() && !cwd.starts_with('/')) return Error(Errc::malformed, "the set-up's cwd is not absolute").at("cwd");
  if (!cwd.empty()) setup.cwd = std::move(cwd);
  setup.who = {.uid = *uid, .gid = *gid, .groups = {}, .account = {}};
  return setup;
}

void complete_setup(Setup& setup) {
  setup.who = setup.native ? look_up(setup.who.uid, setup.who.gid) : look_up(::getuid(), ::getgid());
  add_defaults(setup.env, setup.who, setup.home);
  setup.home = setup.env["HOME"];
  if (only_waits(setup.entrypoint)) setup.entrypoint.clear();
}

bool only_waits(const std::vector<std::string>& entrypoint) {
  static const std::vector<std::string> kTail{"tail", "-f", "/dev/null"};
  static const std::vector<std::string> kSleep{"sleep", "infinity"};
  return entrypoint.empty() || entrypoint == kTail || entrypoint == kSleep;
}

}  // namespace osb::execd
