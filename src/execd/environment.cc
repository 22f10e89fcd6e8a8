#include "execd/environment.h"

#include <limits.h>

#include <optional>

#include "base/text.h"

namespace osb::execd {
namespace {

bool starts_name(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

bool is_name(std::string_view text) {
  if (text.empty() || !starts_name(text.front())) return false;
  for (char c : text)
    if (!continues_name(c)) return false;
  return true;
}

// The name a '$' in front of `text` refers to, taken off its front together with any braces; empty when there is none.
std::string_view take_reference(std::string_view& text) {
  if (text.starts_with('{')) {
    auto end = text.find('}');
    if (end == std::string_view::npos || !is_name(text.substr(1, end - 1))) return {};
    std::string_view name = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return name;
  }
  std::size_t size = 0;
  while (size < text.size() && (size == 0 ? starts_name(text[size]) : continues_name(text[size]))) ++size;
  std::string_view name = text.substr(0, size);
  text.remove_prefix(size);
  return name;
}

// nullopt: a name is unknown, and it is in `missing`.
std::optional<std::string> substitute(std::string_view text, const Env& env, bool unknown_is_empty, std::string_view& missing) {
  std::string out;
  while (!text.empty()) {
    auto at = text.find('$');
    out += text.substr(0, at);
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
    std::string_view name = take_reference(text);
    if (name.empty()) {
      out += '$';
      continue;
    }
    auto known = env.find(name);
    if (known != env.end()) out += known->second;
    if (known != env.end() || unknown_is_empty) continue;
    missing = name;
    return std::nullopt;
  }
  return out;
}

}  // namespace

Result<> check_variable(std::string_view name, std::string_view value) {
  if (name.empty() || name.find('=') != name.npos || name.find('\0') != name.npos)
    return Error(Errc::invalid_argument, cat("environment variable name ", json_string(name.substr(0, 80)), " is not valid"));
  if (value.find('\0') != value.npos)
    return Error(Errc::invalid_argument, cat("the value of ", json_string(name.substr(0, 80)), " contains a zero byte"));
  return Ok{};
}

std::string_view value_of(const Env& env, std::string_view name) {
  auto found = env.find(name);
  return found == env.end() ? std::string_view() : std::string_view(found->second);
}

const std::string* Variables::find(std::string_view name) const {
  auto own = own_.find(name);
  if (own != own_.end()) return &own->second;
  if (!base_) return nullptr;
  auto found = base_->find(name);
  return found == base_->end() ? nullptr : &found->second;
}

bool Variables::has_prefix(std::string_view prefix) const {
  for (const Env* env : {&own_, base_}) {
    if (!env) continue;
    auto found = env->lower_bound(prefix);
    if (found != env->end() && found->first.starts_with(prefix)) return true;
  }
  return false;
}

Env Variables::whole() const {
  Env all = own_;
  if (base_) all.insert(base_->begin(), base_->end());
  return all;
}

void add_defaults(Env& env, const Identity& who, std::string_view home) {
  env.emplace("PATH", kDefaultPath);
  // LC_CTYPE alone: with LANG every program opens a dozen files of the same locale before it does anything.
  if (!env.contains("LANG") && !env.contains("LC_ALL")) env.emplace("LC_CTYPE", "C.UTF-8");
  // A shell counts itself; a program started without one sees what it would see beneath `bash -c`.
  env.emplace("SHLVL", "0");
  if (!home.empty()) env.emplace("HOME", home);
  if (who.account) {
    env.emplace("HOME", who.account->home);
    env.emplace("USER", who.account->name);
    env.emplace("LOGNAME", who.account->name);
    if (!who.account->shell.empty()) env.emplace("SHELL", who.account->shell);
  }
  env.emplace("HOME", "/");
}

void become(Env& env, const Identity& who) {
  if (!who.account) return;
  env.insert_or_assign("HOME", who.account->home);
  env.insert_or_assign("USER", who.account->name);
  env.insert_or_assign("LOGNAME", who.account->name);
}

void overlay_file_text(Env& env, std::string_view text) {
  for (std::string_view line : split(text.substr(0, kMaxEnvFile), '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trim(line);
    auto equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    std::string_view name = trim(line.substr(0, equals));
    if (!is_name(name)) continue;
    std::string_view missing;
    auto value = substitute(line.substr(equals + 1), env, true, missing);
    if (value && value->find('\0') == std::string::npos) env.insert_or_assign(std::string(name), *std::move(value));
  }
}

Result<std::string> expand_variables(std::string_view text, const Env& env) {
  std::string_view missing;
  auto out = substitute(text, env, false, missing);
  if (!out) return Error(Errc::invalid_argument, cat("variable ", json_string(missing), " is not set"));
  return *std::move(out);
}

Result<std::string> expand_path(std::string_view path, const Env& env, std::string_view home, std::string_view base) {
  std::string start;
  if (path == "~" || path.starts_with("~/")) {
    start = home;
    path.remove_prefix(1);
  }
  TRY(std::string rest, expand_variables(path, env));
  std::string full = start + rest;
  if (!full.starts_with('/')) full = cat(base, base.ends_with('/') ? "" : "/", full);
  if (full.find('\0') != std::string::npos) return Error(Errc::invalid_argument, "the path contains a zero byte");
  if (full.size() >= PATH_MAX) return Error(Errc::invalid_argument, "the path is too long");
  return full;
}

}  // namespace osb::execd
