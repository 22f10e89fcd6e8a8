#include "execd/setup.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

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
  TRY(setup.one_user, flag_member(object, "one_user"));
  TRY(std::string cwd, text_member(object, "cwd"));
  TRY(auto uid, id_member(object, "uid"));
  TRY(auto gid, id_member(object, "gid"));
  if (!uid || !gid) return Error(Errc::malformed, "the set-up names no uid and gid");
  if (!cwd.empty() && !cwd.starts_with('/')) return Error(Errc::malformed, "the set-up's cwd is not absolute").at("cwd");
  if (!cwd.empty()) setup.cwd = std::move(cwd);
  setup.who = {.uid = *uid, .gid = *gid, .groups = {}, .account = {}};
  return setup;
}

namespace {

void complete_as(Setup& setup, Identity who) {
  setup.who = std::move(who);
  add_defaults(setup.env, setup.who, setup.home);
  setup.home = setup.env["HOME"];
  if (only_waits(setup.entrypoint)) setup.entrypoint.clear();
}

}  // namespace

void complete_setup(Setup& setup) {
  complete_as(setup, setup.native ? look_up(setup.who.uid, setup.who.gid) : look_up(::getuid(), ::getgid()));
}

Result<Setup> claimed_setup(const Setup& before, std::string_view json) {
  TRY(auto setup, parse_setup(json));
  bool same = setup.who.uid == before.who.uid && setup.who.gid == before.who.gid && setup.keep_caps == before.keep_caps;
  if (!same) return Error(Errc::invalid_argument, "the claim is for another user than the sandbox was made for", EINVAL);
  complete_as(setup, before.who);
  return setup;
}

bool only_waits(const std::vector<std::string>& entrypoint) {
  auto is = [&](std::initializer_list<std::string_view> words) { return std::ranges::equal(entrypoint, words); };
  return entrypoint.empty() || is({"tail", "-f", "/dev/null"}) || is({"sleep", "infinity"});
}

}  // namespace osb::execd
