// opensandbox volume create|ls|rm
#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/each.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "http/http.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr std::array kCreateOptions{OptionSpec{"-s,--size", "SIZE", "how much it may hold: 512Mi, 10Gi"}, kOutputOption, kHostOption,
                                    kKeyOption, kKeyFileOption};
constexpr std::array kListOptions{kQuietOption, kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kRemoveOptions{kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array<std::string_view, 2> kListAlso{"volume list", "volumes"};
constexpr std::array<std::string_view, 1> kRemoveAlso{"volume remove"};

std::uint64_t number_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  boost::system::error_code ec;
  auto number = value == nullptr ? 0 : value->to_number<std::uint64_t>(ec);
  return ec ? 0 : number;
}

Result<int> create_volume(const Args& args) {
  TRY(auto api, find_daemon(args));
  json::object body{{"name", args.operands[0]}};
  if (args.has("size")) body["size"] = args.get("size");
  TRY(auto reply, api.call("POST", "/v1/volumes", json::serialize(body)));
  TRY(auto volume, parse_object(reply.body));
  CHECK_OK(print(wants_json(args) ? pretty(volume) : cat(text_of(volume, "name"), "\n")));
  return kExitOk;
}

std::string as_text(const Args& args, const json::array& volumes) {
  if (wants_json(args)) return pretty(volumes);
  Table table({"NAME", "SIZE", "SANDBOXES", "CREATED"});
  std::string names;
  for (const auto& item : volumes) {
    if (!item.is_object()) continue;
    const auto& volume = item.get_object();
    names += cat(text_of(volume, "name"), "\n");
    table.row({text_of(volume, "name"), format_bytes(number_of(volume, "sizeBytes")), cat(number_of(volume, "sandboxes")),
               format_when(text_of(volume, "createdAt"), wall_now())});
  }
  return args.has("quiet") ? names : table.render();
}

Result<int> list_volumes(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto reply, api.call("GET", "/v1/volumes"));
  TRY(auto object, parse_object(reply.body));
  const auto* items = object.if_contains("items");
  if (items == nullptr || !items->is_array()) return Error(Errc::malformed, "the daemon's list has no items");
  CHECK_OK(print(as_text(args, items->get_array())));
  return kExitOk;
}

Result<int> remove_volumes(const Args& args) {
  TRY(auto api, find_daemon(args));
  return for_each_name(args, args.operands, [&](const std::string& name) -> Result<std::string> {
    TRY([[maybe_unused]] auto reply, api.call("DELETE", cat("/v1/volumes/", http::percent_encode(name))));
    return name;
  });
}

}  // namespace

constinit const CommandSpec kVolumeCreate{
    .name = "volume create",
    .also = {},
    .summary = "make a named volume that outlives sandboxes",
    .usage = "[options] NAME",
    .details = "Sandboxes that mount it share its files. Its size is a hard limit; it takes only the room that is used.",
    .examples = "opensandbox volume create --size 2Gi data\nopensandbox run -v data:/data -- sh -c 'echo hello > /data/note'",
    .options = kCreateOptions,
    .min_operands = 1,
    .max_operands = 1,
    .main = create_volume,
};

constinit const CommandSpec kVolumeList{
    .name = "volume ls",
    .also = kListAlso,
    .summary = "list named volumes",
    .usage = "[options]",
    .details = "With how many living sandboxes use each.",
    .examples = "opensandbox volume ls",
    .options = kListOptions,
    .main = list_volumes,
};

constinit const CommandSpec kVolumeRemove{
    .name = "volume rm",
    .also = kRemoveAlso,
    .summary = "remove named volumes and all that is in them",
    .usage = "[options] NAME...",
    .details = "A volume that a living sandbox uses stays.",
    .examples = "opensandbox volume rm data",
    .options = kRemoveOptions,
    .min_operands = 1,
    .max_operands = 1000,
    .main = remove_volumes,
};

}  // namespace osb::cli
