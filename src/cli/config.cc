#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/daemon_config.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{kConfigOption, kOutputOption};

boost::json::array as_json(const daemon::Config& config) {
  boost::json::array out;
  for (const auto& key : daemon::options()) {
    auto source = config.sources.find(key.path);
    auto from = source == config.sources.end() ? daemon::Source::builtin : source->second;
    out.push_back(boost::json::object{{"key", key.path}, {"value", key.show(config)}, {"source", daemon::name_of(from)}});
  }
  return out;
}

Result<int> check(const Args& args) {
  TRY(auto config, load_config(args));
  CHECK_OK(print(wants_json(args) ? pretty(as_json(config)) : daemon::render(config)));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kConfigCheck{
    .name = "config check",
    .also = {},
    .summary = "check a configuration and show what is in force",
    .usage = "[options]",
    .details =
        "Prints every key with its value and where the value came from. Unknown keys, wrong types and values out of bounds\n"
        "are errors that name the line; exit status 2.",
    .examples = "opensandbox config check --config sandbox-config.yaml",
    .options = kOptions,
    .config_flags = true,
    .main = check,
};

}  // namespace osb::cli
