#include "daemon/config_changes.h"

#include <algorithm>

#include "base/text.h"

namespace osb::daemon {
namespace {

// Sections that App::apply() hands on whole, and single keys of others.
constexpr std::string_view kLiveSections[] = {"auth.", "images.", "limits.", "resources.", "security.", "command_policy."};
constexpr std::string_view kLiveKeys[] = {
    "sessions.max_concurrent",    "server.max_sandbox_timeout_seconds", "pool.automatic", "pool.max_spares", "pool.max_memory", "pools",
    "storage.allowed_host_paths", "storage.volume_default_mb",          "log.level"};

}  // namespace

bool is_live(std::string_view path) {
  auto inside = [&](std::string_view section) { return path.starts_with(section); };
  return std::any_of(std::begin(kLiveSections), std::end(kLiveSections), inside) ||
         std::find(std::begin(kLiveKeys), std::end(kLiveKeys), path) != std::end(kLiveKeys);
}

RunningConfig::RunningConfig(const Config& config) {
  for (const auto& option : options()) shown_[option.path] = option.show(config);
}

std::vector<ConfigChange> RunningConfig::take(const Config& config) {
  std::vector<ConfigChange> out;
  for (const auto& option : options()) {
    auto to = option.show(config);
    auto& from = shown_[option.path];
    if (from == to) continue;
    bool live = is_live(option.path);
    out.push_back({option.path, from, to, !live});
    if (live) from = std::move(to);
  }
  return out;
}

std::string changes_json(const std::vector<ConfigChange>& changes) {
  std::string list;
  for (const auto& change : changes)
    list += cat(list.empty() ? "" : ",", "{\"key\":", json_string(change.path), ",\"from\":", json_string(change.from),
                ",\"to\":", json_string(change.to), ",\"restart\":", change.restart, "}");
  return cat("{\"changes\":[", list, "]}");
}

}  // namespace osb::daemon
