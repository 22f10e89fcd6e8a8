// The table as text: the effective configuration, --help, docs.
#include <algorithm>

#include "base/text.h"
#include "daemon/config.h"

namespace osb::daemon {
namespace {

constexpr std::size_t kCommentColumn = 44;

std::string_view section_of(std::string_view path) {
  auto dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string_view key_of(std::string_view path) {
  auto dot = path.find('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string padded(std::string text, std::size_t column) {
  text.append(text.size() < column ? column - text.size() : 1, ' ');
  return text;
}

std::string source_of(const Config& config, const Option& option) {
  auto found = config.sources.find(option.path);
  if (found == config.sources.end()) return "default";
  switch (found->second) {
    case Source::builtin: return "default";
    case Source::file: return config.file;
    case Source::environment: return cat("environment ", option.path == "auth.insecure_no_auth" ? "" : option.env);
    case Source::flag: return cat("flag --", option.flag);
  }
  return "default";
}

std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

}  // namespace

std::string render(const Config& config) {
  std::string out;
  std::string_view section;
  for (const auto& option : options()) {
    auto own = section_of(option.path);
    if (own != section && !own.empty()) out += cat(own, ":\n");
    section = own;
    auto line = cat(own.empty() ? "" : "  ", key_of(option.path), ": ", option.show(config));
    out += cat(padded(std::move(line), kCommentColumn), "# ", trim(source_of(config, option)), "\n");
  }
  if (!config.auth.api_key.empty()) out += "# API key: from OPENSANDBOX_SERVER_API_KEY (not shown)\n";
  return out;
}

std::string help_text() {
  const Config defaults;
  std::string out;
  for (const auto& option : options()) {
    auto head = option.flag.empty() ? cat("  ", option.path, " (configuration file only)") : cat("  --", option.flag, " VALUE");
    out += cat(head, "\n      ", option.help, "\n      ", option.value, "; default ", option.show(defaults));
    if (!option.flag.empty()) out += cat("; file ", option.path, "; environment ", option.env);
    out += "\n";
  }
  return out;
}

std::string markdown() {
  const Config defaults;
  std::string out = "| Key | Value | Default | Flag | Environment | Meaning |\n|---|---|---|---|---|---|\n";
  for (const auto& option : options()) {
    out += cat("| `", option.path, "` | ", cell(option.value), " | `", option.show(defaults), "` | ",
               option.flag.empty() ? std::string("-") : cat("`--", option.flag, "`"), " | ",
               option.env.empty() ? std::string("-") : cat("`", option.env, "`"), " | ", cell(option.help), " |\n");
  }
  return out;
}

}  // namespace osb::daemon
