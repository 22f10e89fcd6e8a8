#include "cli/daemon_config.h"

#include <limits.h>

#include <cstdlib>

#include "base/text.h"

namespace osb::cli {

daemon::Inputs config_inputs(const Args& args) {
  daemon::Inputs inputs;
  if (args.has("config")) inputs.file = args.get("config");
  inputs.environment = daemon::process_environment();
  if (!args.command->config_flags) return inputs;
  for (const auto& key : daemon::options())
    if (!key.flag.empty() && args.has(key.flag)) inputs.flags.emplace_back(std::string(key.flag), args.get(key.flag));
  return inputs;
}

Result<daemon::Config> load_config(const Args& args) {
  auto config = daemon::load(config_inputs(args));
  if (!config) return usage_error(config.error().what(), config.error().hint());
  return config;
}

std::vector<std::string> config_words(const Args& args) {
  std::vector<std::string> out;
  char path[PATH_MAX];
  if (args.has("config")) {
    auto file = args.get("config");
    out.insert(out.end(), {"--config", ::realpath(file.c_str(), path) != nullptr ? path : file});
  }
  for (const auto& [flag, value] : config_inputs(args).flags) out.push_back(cat("--", flag, "=", value));
  return out;
}

}  // namespace osb::cli
