#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr std::array kOptions{kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array<std::string_view, 2> kAlso{"get", "show"};

std::string plain(const json::value& value) { return value.is_string() ? std::string(value.get_string()) : json::serialize(value); }

// One line a member; members of members get a dot.
void append_rows(Table& table, const std::string& prefix, const json::object& object) {
  for (const auto& [key, value] : object) {
    auto name = prefix.empty() ? std::string(key) : cat(prefix, ".", std::string_view(key));
    if (value.is_object() && !value.get_object().empty())
      append_rows(table, name, value.get_object());
    else
      table.row({name, plain(value)});
  }
}

Result<int> inspect(const Args& args) {
  TRY(auto api, find_daemon(args));
  json::array all;
  for (const auto& name : args.operands) {
    TRY(auto id, api.resolve(name));
    TRY(auto sandbox, api.get(id));
    all.push_back(std::move(sandbox));
  }
  // json is what programs ask inspect for; one sandbox is an object, several are a list.
  if (args.get("output", "json") == "json") {
    CHECK_OK(print(pretty(all.size() == 1 ? all[0] : json::value(all))));
    return kExitOk;
  }
  for (const auto& sandbox : all) {
    Table table({"FIELD", "VALUE"});
    append_rows(table, {}, sandbox.get_object());
    CHECK_OK(print(table.render()));
  }
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kInspect{
    .name = "inspect",
    .also = kAlso,
    .summary = "show everything known about a sandbox",
    .usage = "[options] ID...",
    .details = "Prints JSON unless -o table is given.",
    .examples = "opensandbox inspect 7k2\nopensandbox inspect -o table 7k2",
    .options = kOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1000,
    .main = inspect,
};

}  // namespace osb::cli
