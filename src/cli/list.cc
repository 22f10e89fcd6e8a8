#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/sandbox_request.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr std::array kOptions{
    kQuietOption,
    OptionSpec{"-a,--all", "", "also those that ended"},
    OptionSpec{"-s,--state", "STATE", "only this state; may be given several times", true,
               "Pending|Running|Pausing|Paused|Resuming|Stopping|Terminated|Failed"},
    OptionSpec{"--metadata", "K=V", "only with this label; may be given several times", true},
    kOutputOption,
    kHostOption,
    kKeyOption,
    kKeyFileOption,
};
constexpr std::array<std::string_view, 3> kAlso{"ps", "list", "sandboxes"};

Result<ListFilter> read_filter(const Args& args) {
  ListFilter out;
  out.states = args.all("state");
  TRY(auto labels, parse_metadata(args.all("metadata")));
  out.metadata.assign(labels.begin(), labels.end());
  return out;
}

bool has_ended(const json::object& sandbox) {
  auto state = text_of(sandbox, "status", "state");
  return state == "Terminated" || state == "Failed";
}

std::string labels_of(const json::object& sandbox) {
  const auto* labels = sandbox.if_contains("metadata");
  std::string out;
  if (labels == nullptr || !labels->is_object()) return out;
  for (const auto& [key, value] : labels->get_object()) {
    if (key == "name" || !value.is_string()) continue;
    out += cat(out.empty() ? "" : ",", std::string_view(key), "=", std::string_view(value.get_string()));
  }
  return out;
}

std::string as_table(const std::vector<json::object>& sandboxes) {
  Table table({"ID", "NAME", "STATE", "IMAGE", "CREATED", "EXPIRES", "LABELS"});
  auto now = wall_now();
  for (const auto& sandbox : sandboxes)
    table.row({text_of(sandbox, "id"), text_of(sandbox, "metadata", "name"), text_of(sandbox, "status", "state"),
               text_of(sandbox, "image", "uri"), format_when(text_of(sandbox, "createdAt"), now),
               format_when(text_of(sandbox, "expiresAt"), now), labels_of(sandbox)});
  return table.render();
}

std::string as_text(const Args& args, const std::vector<json::object>& sandboxes) {
  if (args.has("quiet")) {
    std::string out;
    for (const auto& sandbox : sandboxes) out += cat(text_of(sandbox, "id"), "\n");
    return out;
  }
  if (!wants_json(args)) return as_table(sandboxes);
  return pretty(json::value(json::array(sandboxes.begin(), sandboxes.end())));
}

Result<int> list(const Args& args) {
  TRY(auto filter, read_filter(args));
  TRY(auto api, find_daemon(args));
  TRY(auto sandboxes, api.list(filter));
  if (!args.has("all") && filter.states.empty()) std::erase_if(sandboxes, has_ended);
  CHECK_OK(print(as_text(args, sandboxes)));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kList{
    .name = "ls",
    .also = kAlso,
    .summary = "list sandboxes",
    .usage = "[options]",
    .details = {},
    .examples =
        "opensandbox ls\n"
        "opensandbox ls -o json | jq -r '.[].id'\n"
        "opensandbox kill $(opensandbox ls -q --metadata job=ci)",
    .options = kOptions,
    .main = list,
};

}  // namespace osb::cli
