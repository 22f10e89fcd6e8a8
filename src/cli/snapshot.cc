// opensandbox snapshot create|ls|inspect|rm
#include <array>
#include <boost/json.hpp>
#include <thread>

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

constexpr std::chrono::seconds kPatience{900};
constexpr std::chrono::milliseconds kBetweenLooks{50};

constexpr std::array kCreateOptions{OptionSpec{"-n,--name", "NAME", "a name for people"},
                                    OptionSpec{"--no-wait", "", "answer when it is accepted, not when it is ready"},
                                    kOutputOption,
                                    kHostOption,
                                    kKeyOption,
                                    kKeyFileOption};
constexpr std::array kListOptions{kQuietOption, kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kOneOptions{kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array<std::string_view, 1> kListAlso{"snapshot list"};
constexpr std::array<std::string_view, 1> kRemoveAlso{"snapshot remove"};

const json::object& status_of(const json::object& snapshot) {
  static const json::object kNone;
  const auto* status = snapshot.if_contains("status");
  return status != nullptr && status->is_object() ? status->get_object() : kNone;
}

std::string state_of(const json::object& snapshot) { return text_of(status_of(snapshot), "state"); }

Result<json::object> read_one(Api& api, const std::string& id) {
  TRY(auto reply, api.call("GET", cat("/v1/snapshots/", http::percent_encode(id))));
  return parse_object(reply.body);
}

Result<json::object> wait_until_settled(Api& api, json::object snapshot) {
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (state_of(snapshot) == "Creating") {
    if (std::chrono::steady_clock::now() > end) return Error(Errc::timeout, "the snapshot is still being taken");
    std::this_thread::sleep_for(kBetweenLooks);
    TRY(snapshot, read_one(api, text_of(snapshot, "id")));
  }
  if (state_of(snapshot) != "Ready") return Error(Errc::internal, text_of(status_of(snapshot), "message"));
  return snapshot;
}

Result<int> create_snapshot(const Args& args) {
  TRY(auto api, find_daemon(args));
  json::object body;
  if (args.has("name")) body["name"] = args.get("name");
  TRY(auto sandbox, api.resolve(args.operands[0]));
  TRY(auto reply, api.call("POST", cat("/v1/sandboxes/", sandbox, "/snapshots"), json::serialize(body)));
  TRY(auto snapshot, parse_object(reply.body));
  if (!args.has("no-wait")) {
    TRY(snapshot, wait_until_settled(api, std::move(snapshot)));
  }
  CHECK_OK(print(wants_json(args) ? pretty(snapshot) : cat(text_of(snapshot, "id"), "\n")));
  return kExitOk;
}

std::string as_text(const Args& args, const json::array& snapshots) {
  if (wants_json(args)) return pretty(snapshots);
  Table table({"ID", "NAME", "STATE", "SANDBOX", "CREATED"});
  std::string ids;
  for (const auto& item : snapshots) {
    if (!item.is_object()) continue;
    const auto& snapshot = item.get_object();
    ids += cat(text_of(snapshot, "id"), "\n");
    table.row({text_of(snapshot, "id"), text_of(snapshot, "name"), state_of(snapshot), text_of(snapshot, "sandboxId"),
               format_when(text_of(snapshot, "createdAt"), wall_now())});
  }
  return args.has("quiet") ? ids : table.render();
}

Result<int> list_snapshots(const Args& args) {
  TRY(auto api, find_daemon(args));
  json::array all;
  for (int page = 1;; ++page) {
    TRY(auto reply, api.call("GET", cat("/v1/snapshots?pageSize=200&page=", page)));
    TRY(auto object, parse_object(reply.body));
    const auto* items = object.if_contains("items");
    if (items == nullptr || !items->is_array()) return Error(Errc::malformed, "the daemon's list has no items");
    for (const auto& item : items->get_array()) all.push_back(item);
    if (items->get_array().size() < 200) break;
  }
  CHECK_OK(print(as_text(args, all)));
  return kExitOk;
}

Result<int> inspect_snapshot(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto snapshot, read_one(api, args.operands[0]));
  CHECK_OK(print(pretty(snapshot)));
  return kExitOk;
}

Result<int> remove_snapshots(const Args& args) {
  TRY(auto api, find_daemon(args));
  return for_each_name(args, args.operands, [&](const std::string& id) -> Result<std::string> {
    TRY([[maybe_unused]] auto reply, api.call("DELETE", cat("/v1/snapshots/", http::percent_encode(id))));
    return id;
  });
}

}  // namespace

constinit const CommandSpec kSnapshotCreate{
    .name = "snapshot create",
    .also = {},
    .summary = "keep the files of a sandbox as they are now",
    .usage = "[options] SANDBOX",
    .details =
        "What the sandbox has written in its root, /workspace, /home/user, /tmp and /var/tmp becomes a snapshot; it stands still while\n"
        "that is copied. Processes and memory are not kept. `opensandbox create --snapshot ID` makes a sandbox from it.",
    .examples = "opensandbox snapshot create --name ready $id\nopensandbox run --snapshot $(opensandbox snapshot create $id) -- ls",
    .options = kCreateOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1,
    .main = create_snapshot,
};

constinit const CommandSpec kSnapshotList{
    .name = "snapshot ls",
    .also = kListAlso,
    .summary = "list snapshots",
    .usage = "[options]",
    .details = "Newest first.",
    .examples = "opensandbox snapshot ls",
    .options = kListOptions,
    .main = list_snapshots,
};

constinit const CommandSpec kSnapshotInspect{
    .name = "snapshot inspect",
    .also = {},
    .summary = "show one snapshot as JSON",
    .usage = "[options] SNAPSHOT",
    .details = "State, reason, size and the sandbox it came from.",
    .examples = "opensandbox snapshot inspect $snapshot",
    .options = kOneOptions,
    .min_operands = 1,
    .max_operands = 1,
    .main = inspect_snapshot,
};

constinit const CommandSpec kSnapshotRemove{
    .name = "snapshot rm",
    .also = kRemoveAlso,
    .summary = "remove snapshots",
    .usage = "[options] SNAPSHOT...",
    .details = "A snapshot that a living sandbox was made from stays.",
    .examples = "opensandbox snapshot rm $(opensandbox snapshot ls -q)",
    .options = kOneOptions,
    .min_operands = 1,
    .max_operands = 1000,
    .main = remove_snapshots,
};

}  // namespace osb::cli
