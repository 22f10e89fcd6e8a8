#include "daemon/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/text.h"
#include "daemon/config_pools.h"
#include "daemon/config_yaml.h"

namespace osb::daemon {
namespace {

using Kind = YamlNode::Kind;

class FileReader {
 public:
  FileReader(const YamlDocument& document, const std::string& origin, Config& config, std::vector<std::string>& problems)
      : document_(document), origin_(origin), config_(config), problems_(problems) {}

  void read() {
    if (document_.nodes.empty() || root().kind == Kind::null) return;
    if (root().kind != Kind::map) return problem(root().line, cat("sections are expected, not ", name_of(root().kind)));
    for (const auto& member : root().members) read_top(member);
  }

 private:
  const YamlNode& root() const { return document_.nodes.front(); }
  const YamlNode& node(std::size_t at) const { return document_.nodes[at]; }
  void problem(std::size_t line, std::string_view what) { problems_.push_back(cat(origin_, ":", line, ": ", what)); }

  static const Option* option(std::string_view path) {
    auto all = options();
    auto found = std::find_if(all.begin(), all.end(), [&](const Option& o) { return o.path == path; });
    return found == all.end() ? nullptr : &*found;
  }

  // The names that may stand directly below `section` ("" = the outermost level).
  static std::vector<std::string_view> names_below(std::string_view section) {
    std::vector<std::string_view> out;
    for (const auto& o : options()) {
      auto dot = o.path.find('.');
      auto name = section.empty() ? o.path.substr(0, dot) : o.path.substr(std::min(o.path.size(), section.size() + 1));
      bool below = section.empty() || (dot == section.size() && o.path.starts_with(section));
      if (below && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
    return out;
  }

  void unknown(const YamlNode::Member& member, std::string_view section) {
    auto path = section.empty() ? member.name : cat(section, ".", member.name);
    auto known = names_below(section);
    std::string hint;
    if (path == "auth.api_key" || path == "server.api_key") {
      hint = "; keys are not written here: name a file with auth.api_key_file";
    } else if (auto close = nearest(member.name, known)) {
      hint = cat("; did you mean ", *close, "?");
    } else {
      for (auto name : known) hint += cat(hint.empty() ? "; known are " : ", ", name);
    }
    problem(member.line, cat(path, ": unknown key", hint));
  }

  void read_top(const YamlNode::Member& member) {
    if (const auto* o = option(member.name)) return read_option(*o, node(member.node));
    auto known = names_below("");
    if (std::find(known.begin(), known.end(), member.name) == known.end()) return unknown(member, "");
    const auto& section = node(member.node);
    if (section.kind == Kind::null) return;
    if (section.kind != Kind::map)
      return problem(section.line, cat(member.name, ": is a section with keys of its own, not ", name_of(section.kind)));
    for (const auto& inner : section.members) {
      const auto* o = option(cat(member.name, ".", inner.name));
      if (o == nullptr) {
        unknown(inner, member.name);
      } else {
        read_option(*o, node(inner.node));
      }
    }
  }

  void read_option(const Option& o, const YamlNode& value) {
    if (value.kind == Kind::null) return;  // "key:" keeps the default
    config_.sources[std::string(o.path)] = Source::file;
    if (o.path == "auth.keys") return read_keys(value);
    if (o.path == "images.aliases") return read_aliases(value);
    if (o.path == "storage.allowed_host_paths") return read_host_paths(value);
    if (o.path == "images.insecure_registries") return read_hosts(o.path, value, config_.images.insecure_registries);
    if (o.path == "images.trusted_hosts") return read_hosts(o.path, value, config_.images.trusted_hosts);
    if (o.path == "sessions.users_without_key") return read_users(value);
    if (o.path == "sessions.allowed_origins") return read_origins(value);
    if (o.path == "images.registries") return read_registries(value);
    if (o.path == "pools") return read_pools(value);
    if (o.path == "command_policy.rules") return read_rules(value);
    if (value.kind != Kind::scalar) return problem(value.line, cat(o.path, ": must be ", o.value, ", not ", name_of(value.kind)));
    auto set = o.set(config_, value.text);
    if (!set) problem(value.line, cat(o.path, ": ", set.error().what(), ", not ", json_string(value.text.substr(0, 80))));
  }

  void read_aliases(const YamlNode& value) {
    if (value.kind != Kind::map) return problem(value.line, cat("images.aliases: must be a map of name: name, not ", name_of(value.kind)));
    for (const auto& member : value.members) {
      const auto& target = node(member.node);
      if (target.kind != Kind::scalar || target.text.empty() || member.name.empty()) {
        problem(member.line, cat("images.aliases.", member.name.substr(0, 80), ": must be the name of an image"));
      } else {
        config_.images.aliases[member.name] = target.text;
      }
    }
  }

  void read_host_paths(const YamlNode& value) {
    if (value.kind != Kind::list)
      return problem(value.line, cat("storage.allowed_host_paths: must be a list of absolute paths, not ", name_of(value.kind)));
    for (auto item : value.items) {
      const auto& path = node(item);
      bool fine =
          path.kind == Kind::scalar && path.text.size() > 1 && path.text.starts_with('/') && path.text.find("..") == std::string::npos;
      if (!fine) {
        problem(path.line, "storage.allowed_host_paths: each must be an absolute path below /");
      } else {
        config_.storage.allowed_host_paths.push_back(path.text);
      }
    }
  }

  static bool is_host(std::string_view text) {
    auto ok = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || std::string_view(".-_:[]").find(c) != std::string_view::npos;
    };
    return !text.empty() && text.size() <= 255 && std::all_of(text.begin(), text.end(), ok);
  }

  void read_hosts(std::string_view path, const YamlNode& value, std::vector<std::string>& out) {
    if (value.kind != Kind::list) return problem(value.line, cat(path, ": must be a list of host or host:port, not ", name_of(value.kind)));
    for (std::size_t item : value.items) {
      const auto& host = node(item);
      if (host.kind == Kind::scalar && is_host(host.text)) {
        out.push_back(host.text);
      } else {
        problem(host.line, cat(path, ": each must be host or host:port in lowercase, without https://"));
      }
    }
  }

  void read_users(const YamlNode& value) {
    if (value.kind != Kind::list) return problem(value.line, cat("sessions.users_without_key: must be a list, not ", name_of(value.kind)));
    for (std::size_t item : value.items) {
      const auto& user = node(item);
      bool known = user.kind == Kind::scalar && uid_of(user.text);
      if (known) config_.sessions.users_without_key.push_back(user.text);
      if (!known) problem(user.line, cat("sessions.users_without_key: there is no user ", json_string(user.text.substr(0, 80))));
    }
  }

  void read_origins(const YamlNode& value) {
    if (value.kind != Kind::list) return problem(value.line, cat("sessions.allowed_origins: must be a list, not ", name_of(value.kind)));
    for (std::size_t item : value.items) {
      const auto& origin = node(item);
      auto slashes = origin.text.find("://");
      bool fine = origin.kind == Kind::scalar && (origin.text.starts_with("http://") || origin.text.starts_with("https://")) &&
                  origin.text.size() > slashes + 3 && origin.text.find_first_of("/?#* ", slashes + 3) == std::string::npos;
      if (fine) config_.sessions.allowed_origins.push_back(origin.text);
      if (!fine) problem(origin.line, "sessions.allowed_origins: each must be scheme, host and port only, such as http://localhost:5173");
    }
  }

  void read_registries(const YamlNode& value) {
    if (value.kind != Kind::list) return problem(value.line, cat("images.registries: must be a list, not ", name_of(value.kind)));
    for (std::size_t i = 0; i < value.items.size(); ++i) read_registry(node(value.items[i]), cat("images.registries[", i, "]"));
  }

  void read_registry(const YamlNode& value, const std::string& path) {
    if (value.kind != Kind::map) return problem(value.line, cat(path, ": must have host, username and password_file"));
    RegistryConfig login;
    for (const auto& member : value.members) {
      const auto& text = node(member.node);
      auto at = cat(path, ".", member.name.substr(0, 80));
      std::string* field = member.name == "host"            ? &login.host
                           : member.name == "username"      ? &login.username
                           : member.name == "password_file" ? &login.password_file
                                                            : nullptr;
      if (member.name == "password") return problem(member.line, cat(at, ": passwords are not written here; use password_file"));
      if (field == nullptr) return problem(member.line, cat(at, ": unknown key; known are host, username, password_file"));
      if (text.kind != Kind::scalar) return problem(member.line, cat(at, ": must be a single value"));
      *field = text.text;
    }
    if (!is_host(login.host)) return problem(value.line, cat(path, ": host must be host or host:port in lowercase, without https://"));
    if (login.username.empty() || login.username.find(':') != std::string::npos)
      return problem(value.line, cat(path, ": needs a username without ':'"));
    if (!login.password_file.starts_with('/')) return problem(value.line, cat(path, ": password_file must be an absolute path"));
    config_.images.registries.push_back(std::move(login));
  }

  void read_pools(const YamlNode& value) {
    if (value.kind != Kind::list) return problem(value.line, cat("pools: must be a list, not ", name_of(value.kind)));
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      auto pool = read_pool(document_, value.items[i]);
      if (!pool) {
        problem(node(value.items[i]).line, cat("pools[", i, "]", pool.error().what()));
      } else if (std::ranges::any_of(config_.pools, [&](const auto& other) { return other.name == pool->name; })) {
        problem(node(value.items[i]).line, cat("pools[", i, "]: another pool has the same name"));
      } else {
        config_.pools.push_back(*std::move(pool));
      }
    }
  }

  void read_rules(const YamlNode& value) {
    auto policy = parse_command_policy(boost::json::object{{"rules", as_json(document_, value)}});
    if (!policy) return problem(value.line, cat("command_policy.", policy.error().what()));
    config_.command_policy.policy.rules = std::move(policy->rules);
  }

  void read_keys(const YamlNode& value) {
    if (value.kind != Kind::list) return problem(value.line, cat("auth.keys: must be a list, not ", name_of(value.kind)));
    for (std::size_t i = 0; i < value.items.size(); ++i) read_key(node(value.items[i]), cat("auth.keys[", i, "]"));
  }

  void read_key(const YamlNode& value, const std::string& path) {
    if (value.kind != Kind::map) return problem(value.line, cat(path, ": must have name and key_file or sha256"));
    KeyConfig key;
    bool fine = true;
    for (const auto& member : value.members) fine = read_key_member(member, path, key) && fine;
    if (fine) fine = check_key(key, value.line, path);
    if (fine) config_.auth.keys.push_back(std::move(key));
  }

  bool read_key_member(const YamlNode::Member& member, const std::string& path, KeyConfig& key) {
    const auto& value = node(member.node);
    auto at = cat(path, ".", member.name.substr(0, 80));
    if (member.name == "key" || member.name == "api_key") {
      problem(member.line, cat(at, ": keys are not written here; use key_file or sha256"));
      return false;
    }
    static const std::vector<std::string_view> kKnown{"name", "key_file", "sha256", "sees_all"};
    if (std::find(kKnown.begin(), kKnown.end(), member.name) == kKnown.end()) {
      auto close = nearest(member.name, kKnown);
      problem(member.line, cat(at, ": unknown key", close ? cat("; did you mean ", *close, "?") : std::string()));
      return false;
    }
    if (value.kind != Kind::scalar) {
      problem(member.line, cat(at, ": must be a single value"));
      return false;
    }
    if (member.name == "name") key.name = value.text;
    if (member.name == "key_file") key.key_file = value.text;
    if (member.name == "sha256") key.sha256 = to_lower(value.text);
    if (member.name != "sees_all") return true;
    key.sees_all = value.text == "true";
    if (value.text == "true" || value.text == "false") return true;
    problem(member.line, cat(at, ": must be true or false"));
    return false;
  }

  // Names of callers that show no key; one who had such a key would be taken for them.
  static bool is_our_name(std::string_view name) {
    constexpr std::string_view kOurs[] = {"local", "anonymous", "anyone", "system", "default", "token", "idle", "shutdown"};
    return std::ranges::find(kOurs, name) != std::end(kOurs);
  }

  bool check_key(const KeyConfig& key, std::size_t line, const std::string& path) {
    auto plain = [](char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.'; };
    auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    auto same = [&](const KeyConfig& other) { return other.name == key.name; };
    std::string_view wrong;
    if (key.name.empty() || key.name.size() > 64 || !std::all_of(key.name.begin(), key.name.end(), plain)) {
      wrong = "name must be 1 to 64 of letters, digits, '-', '_', '.'";
    } else if (is_our_name(key.name)) {
      wrong = "name is one the server uses itself";
    } else if (std::any_of(config_.auth.keys.begin(), config_.auth.keys.end(), same)) {
      wrong = "another key has the same name";
    } else if (key.key_file.empty() == key.sha256.empty()) {
      wrong = "needs exactly one of key_file and sha256";
    } else if (!key.key_file.empty() && !key.key_file.starts_with('/')) {
      wrong = "key_file must be an absolute path";
    } else if (!key.sha256.empty() && (key.sha256.size() != 64 || !std::all_of(key.sha256.begin(), key.sha256.end(), hex))) {
      wrong = "sha256 must be 64 hexadecimal digits";
    }
    if (!wrong.empty()) problem(line, cat(path, ": ", wrong));
    return wrong.empty();
  }

  const YamlDocument& document_;
  const std::string& origin_;
  Config& config_;
  std::vector<std::string>& problems_;
};

}  // namespace

Result<std::string> read_config_file(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return Error::from_errno(cat("configuration file ", path), errno, Errc::invalid_argument);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Error(Errc::invalid_argument, cat("configuration file ", path, " is not a regular file"));
  std::string text(kMaxYamlBytes + 1, '\0');
  std::size_t size = 0;
  for (;;) {
    auto n = ::read(file.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::from_errno(cat("read ", path), errno, Errc::invalid_argument);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  text.resize(size);
  return text;
}

void apply_config_text(std::string_view text, const std::string& origin, Config& config, std::vector<std::string>& problems) {
  auto document = parse_yaml(text);
  if (!document) {
    problems.push_back(cat(origin, ": ", document.error().what()));
    return;
  }
  FileReader(*document, origin, config, problems).read();
}

}  // namespace osb::daemon
