// opensandbox pool create|ls|scale|drain|rm|stats
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

constexpr OptionSpec kBufferMin{"--buffer-min", "N", "so many wait to be claimed at all times"};
constexpr OptionSpec kBufferMax{"--buffer-max", "N", "at most so many wait, however great the demand"};
constexpr OptionSpec kPoolMin{"--pool-min", "N", "so many in all, waiting and claimed"};
constexpr OptionSpec kPoolMax{"--pool-max", "N", "none are made ahead of time past so many in all"};
constexpr std::array kCreateOptions{OptionSpec{"-i,--image", "IMAGE", "what its sandboxes are made from (host)"},
                                    OptionSpec{"--cpu", "N", "cpus of each: 0.5, 2"},
                                    OptionSpec{"-m,--memory", "SIZE", "memory of each: 256Mi, 1Gi"},
                                    OptionSpec{"--disk", "SIZE", "disk of each: 512Mi"},
                                    OptionSpec{"--pids", "N", "processes of each"},
                                    OptionSpec{"--mode", "MODE", "who code in them is", false, "user|root"},
                                    kBufferMin,
                                    kBufferMax,
                                    kPoolMin,
                                    kPoolMax,
                                    kOutputOption,
                                    kHostOption,
                                    kKeyOption,
                                    kKeyFileOption};
constexpr std::array kScaleOptions{kBufferMin, kBufferMax, kPoolMin, kPoolMax, kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kListOptions{kQuietOption, kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kPlainOptions{kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array<std::string_view, 2> kListAlso{"pool list", "pools"};
constexpr std::array<std::string_view, 2> kRemoveAlso{"pool remove", "pool delete"};

std::int64_t number_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  boost::system::error_code ec;
  auto number = value == nullptr ? 0 : value->to_number<std::int64_t>(ec);
  return ec ? 0 : number;
}

json::object inner(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? value->get_object() : json::object();
}

std::string path_of(const std::string& name) { return cat("/v1/pools/", http::percent_encode(name)); }

Result<> take_count(const Args& args, std::string_view option, std::string_view member, json::object& out) {
  if (!args.has(option)) return Ok{};
  auto number = parse_int<std::int64_t>(args.get(option));
  if (!number || *number < 0) return usage_error(cat("--", option, ": not a number: ", args.get(option)));
  out[member] = *number;
  return Ok{};
}

Result<> take_capacity(const Args& args, json::object& out) {
  CHECK_OK(take_count(args, "buffer-min", "bufferMin", out));
  CHECK_OK(take_count(args, "buffer-max", "bufferMax", out));
  CHECK_OK(take_count(args, "pool-min", "poolMin", out));
  return take_count(args, "pool-max", "poolMax", out);
}

// What was not said follows from what was: a buffer of exactly its least, a pool without a bound of its own.
Result<json::object> new_capacity(const Args& args) {
  json::object out{{"bufferMin", 0}, {"poolMin", 0}, {"poolMax", 10'000}};
  CHECK_OK(take_capacity(args, out));
  if (!out.contains("bufferMax")) out["bufferMax"] = std::max<std::int64_t>(number_of(out, "bufferMin"), 1);
  return out;
}

std::string line_of(const json::object& pool) {
  auto status = inner(pool, "status");
  return cat(text_of(pool, "name"), ": ", number_of(status, "available"), " waiting, ", number_of(status, "allocated"), " claimed\n");
}

Result<int> create_pool(const Args& args) {
  TRY(auto api, find_daemon(args));
  json::object limits, extensions;
  for (std::string_view name : {"cpu", "memory", "disk", "pids"})
    if (args.has(name)) limits[name] = args.get(name);
  if (args.has("mode")) extensions["opensandbox.mode"] = args.get("mode");
  TRY(auto capacity, new_capacity(args));
  json::object shape{{"image", json::object{{"uri", args.get("image", "host")}}}, {"resourceLimits", limits}, {"extensions", extensions}};
  json::object body{{"name", args.operands[0]}, {"template", shape}, {"capacitySpec", capacity}};
  TRY(auto reply, api.call("POST", "/v1/pools", json::serialize(body)));
  TRY(auto pool, parse_object(reply.body));
  CHECK_OK(print(wants_json(args) ? pretty(pool) : cat(text_of(pool, "name"), "\n")));
  return kExitOk;
}

std::string range(const json::object& object, std::string_view low, std::string_view high) {
  return cat(number_of(object, low), "..", number_of(object, high));
}

std::string as_text(const Args& args, const json::array& pools) {
  if (wants_json(args)) return pretty(pools);
  Table table({"NAME", "IMAGE", "WAITING", "CLAIMED", "BUFFER", "SIZE", "CREATED"});
  std::string names;
  for (const auto& item : pools) {
    if (!item.is_object()) continue;
    const auto& pool = item.get_object();
    auto status = inner(pool, "status");
    auto capacity = inner(pool, "capacitySpec");
    names += cat(text_of(pool, "name"), "\n");
    table.row({text_of(pool, "name"), text_of(pool, "image"), cat(number_of(status, "available")), cat(number_of(status, "allocated")),
               range(capacity, "bufferMin", "bufferMax"), range(capacity, "poolMin", "poolMax"),
               format_when(text_of(pool, "createdAt"), wall_now())});
  }
  return args.has("quiet") ? names : table.render();
}

Result<int> list_pools(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto reply, api.call("GET", "/v1/pools"));
  TRY(auto object, parse_object(reply.body));
  const auto* items = object.if_contains("items");
  if (items == nullptr || !items->is_array()) return Error(Errc::malformed, "the daemon's list has no items");
  CHECK_OK(print(as_text(args, items->get_array())));
  return kExitOk;
}

Result<int> scale_pool(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto before, api.call("GET", path_of(args.operands[0])));
  TRY(auto pool, parse_object(before.body));
  auto capacity = inner(pool, "capacitySpec");
  auto asked = capacity;
  CHECK_OK(take_capacity(args, asked));
  if (asked == capacity) return usage_error("nothing to change", "give --buffer-min, --buffer-max, --pool-min or --pool-max");
  // A larger least takes the bounds above it along, unless they were said too.
  auto lift = [&](std::string_view option, std::string_view bound, std::string_view least) {
    if (!args.has(option) && number_of(asked, bound) < number_of(asked, least)) asked[bound] = number_of(asked, least);
  };
  lift("buffer-max", "bufferMax", "bufferMin");
  lift("pool-max", "poolMax", "bufferMax");
  lift("pool-max", "poolMax", "poolMin");
  TRY(auto reply, api.call("PUT", path_of(args.operands[0]), json::serialize(json::object{{"capacitySpec", asked}})));
  TRY(auto changed, parse_object(reply.body));
  CHECK_OK(print(wants_json(args) ? pretty(changed) : line_of(changed)));
  return kExitOk;
}

Result<int> drain_pools(const Args& args) {
  TRY(auto api, find_daemon(args));
  std::vector<std::string> paths;
  if (args.operands.empty()) paths.emplace_back("/osb/v1/pools/drain");
  for (const auto& name : args.operands) paths.push_back(cat("/osb/v1/pools/", http::percent_encode(name), "/drain"));
  std::int64_t count = 0;
  for (const auto& path : paths) {
    TRY(auto reply, api.call("POST", path));
    TRY(auto object, parse_object(reply.body));
    count += number_of(object, "drained");
  }
  CHECK_OK(print(wants_json(args) ? pretty(json::object{{"drained", count}}) : cat(count, " ended\n")));
  return kExitOk;
}

Result<int> remove_pools(const Args& args) {
  TRY(auto api, find_daemon(args));
  return for_each_name(args, args.operands, [&](const std::string& name) -> Result<std::string> {
    TRY([[maybe_unused]] auto reply, api.call("DELETE", path_of(name)));
    return name;
  });
}

std::string stats_text(const json::object& stats) {
  std::string out =
      cat(number_of(stats, "available"), " waiting; ", number_of(stats, "hits"), " hits, ", number_of(stats, "misses"), " misses; ",
          number_of(stats, "made"), " made, ", number_of(stats, "lost"), " lost, ", number_of(stats, "expired"), " expired\n");
  const auto* shapes = stats.if_contains("shapes");
  if (shapes == nullptr || !shapes->is_array() || shapes->get_array().empty()) return out;
  Table table({"POOL", "IMAGE", "MEMORY", "CPU", "MODE", "WAITING", "WANTED", "HITS", "MISSES"});
  for (const auto& item : shapes->get_array()) {
    if (!item.is_object()) continue;
    const auto& shape = item.get_object();
    auto pool = text_of(shape, "pool");
    table.row({pool.empty() ? "-" : pool, text_of(shape, "image"),
               format_bytes(static_cast<std::uint64_t>(number_of(shape, "memoryBytes"))), cat(number_of(shape, "cpuMillis"), "m"),
               text_of(shape, "mode"), cat(number_of(shape, "available")), cat(number_of(shape, "wanted")), cat(number_of(shape, "hits")),
               cat(number_of(shape, "misses"))});
  }
  return out + table.render();
}

Result<int> show_stats(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto reply, api.call("GET", "/osb/v1/pools/stats"));
  TRY(auto stats, parse_object(reply.body));
  CHECK_OK(print(wants_json(args) ? pretty(stats) : stats_text(stats)));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kPoolCreate{
    .name = "pool create",
    .also = {},
    .summary = "make a named pool: sandboxes of one kind, made before they are asked for",
    .usage = "[options] NAME",
    .details =
        "A create with extensions.poolRef NAME takes one that waits; when none does it is made on the spot. A sandbox that was "
        "claimed never comes back.",
    .examples = "opensandbox pool create --image host --memory 256Mi --buffer-min 8 agents",
    .options = kCreateOptions,
    .min_operands = 1,
    .max_operands = 1,
    .main = create_pool,
};

constinit const CommandSpec kPoolList{
    .name = "pool ls",
    .also = kListAlso,
    .summary = "list named pools",
    .usage = "[options]",
    .details = "With how many sandboxes wait in each and how many that were claimed live.",
    .examples = "opensandbox pool ls",
    .options = kListOptions,
    .main = list_pools,
};

constinit const CommandSpec kPoolScale{
    .name = "pool scale",
    .also = {},
    .summary = "change how many sandboxes a pool keeps",
    .usage = "[options] NAME",
    .details = "What is not given stays, or grows along.",
    .examples = "opensandbox pool scale --buffer-min 20 agents",
    .options = kScaleOptions,
    .min_operands = 1,
    .max_operands = 1,
    .main = scale_pool,
};

constinit const CommandSpec kPoolDrain{
    .name = "pool drain",
    .also = {},
    .summary = "end sandboxes that wait",
    .usage = "[options] [NAME...]",
    .details =
        "Of a named pool: they are made again at once. Without a name: those that were made by demand; the next create that "
        "misses them begins anew.",
    .examples = "opensandbox pool drain agents\nopensandbox pool drain",
    .options = kPlainOptions,
    .max_operands = 1000,
    .main = drain_pools,
};

constinit const CommandSpec kPoolRemove{
    .name = "pool rm",
    .also = kRemoveAlso,
    .summary = "remove named pools",
    .usage = "[options] NAME...",
    .details = "Sandboxes that were claimed live on.",
    .examples = "opensandbox pool rm agents",
    .options = kPlainOptions,
    .min_operands = 1,
    .max_operands = 1000,
    .main = remove_pools,
};

constinit const CommandSpec kPoolStats{
    .name = "pool stats",
    .also = {},
    .summary = "what all pools did: hits, misses, what waits",
    .usage = "[options]",
    .details = "Also of what is made by demand, without a name.",
    .examples = "opensandbox pool stats\nopensandbox pool stats -o json",
    .options = kPlainOptions,
    .main = show_stats,
};

}  // namespace osb::cli
