#include "daemon/config_pools.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "model/pool_request.h"

namespace osb::daemon {
namespace {

using Kind = YamlNode::Kind;

Error bad(std::string_view member, std::string_view why) {
  return {Errc::invalid_argument, cat(member.empty() ? "" : ".", member, ": ", why)};
}

struct TextMember {
  std::string_view name;
  std::string NamedPoolConfig::* field;
};
constexpr TextMember kTexts[] = {
    {"name", &NamedPoolConfig::name},     {"image", &NamedPoolConfig::image},       {"cpu", &NamedPoolConfig::cpu},
    {"memory", &NamedPoolConfig::memory}, {"disk", &NamedPoolConfig::disk},         {"pids", &NamedPoolConfig::pids},
    {"mode", &NamedPoolConfig::mode},     {"syscalls", &NamedPoolConfig::syscalls}, {"root", &NamedPoolConfig::root},
};
constexpr std::string_view kCounts[] = {"buffer_min", "buffer_max", "pool_min", "pool_max"};

Result<> set_count(NamedPoolConfig& pool, std::string_view name, std::string_view text) {
  auto number = parse_int<std::uint32_t>(text);
  if (!number || *number > kMaxPoolSize) return bad(name, cat("must be a whole number from 0 to ", kMaxPoolSize));
  if (name == "buffer_min") pool.buffer_min = *number;
  if (name == "buffer_max") pool.buffer_max = *number;
  if (name == "pool_min") pool.pool_min = *number;
  if (name == "pool_max") pool.pool_max = number;
  return Ok{};
}

Result<> read_member(NamedPoolConfig& pool, std::string_view name, const YamlNode& value) {
  if (value.kind == Kind::null) return Ok{};
  const auto* text = std::ranges::find_if(kTexts, [&](const TextMember& each) { return each.name == name; });
  bool count = std::ranges::find(kCounts, name) != std::end(kCounts);
  if (text == std::end(kTexts) && !count) {
    std::vector<std::string_view> known(std::begin(kCounts), std::end(kCounts));
    for (const auto& each : kTexts) known.push_back(each.name);
    auto close = nearest(name, known);
    return bad(name.substr(0, 80), close ? cat("unknown key; did you mean ", *close, "?") : std::string("unknown key"));
  }
  if (value.kind != Kind::scalar) return bad(name, "must be a single value");
  if (count) return set_count(pool, name, value.text);
  pool.*(text->field) = value.text;
  return Ok{};
}

// The create request that the pool stands for: judged by the same rules as one that a client sends.
std::string as_request(const NamedPoolConfig& pool) {
  std::string limits, extensions;
  auto add = [](std::string& out, std::string_view name, const std::string& text) {
    if (!text.empty()) out += cat(out.empty() ? "" : ",", json_string(name), ":", json_string(text));
  };
  add(limits, "cpu", pool.cpu);
  add(limits, "memory", pool.memory);
  add(limits, "disk", pool.disk);
  add(limits, "pids", pool.pids);
  add(extensions, "opensandbox.mode", pool.mode);
  add(extensions, "opensandbox.syscalls", pool.syscalls);
  add(extensions, "opensandbox.root", pool.root);
  return cat(R"({"image":{"uri":)", json_string(pool.image), R"(},"entrypoint":["tail","-f","/dev/null"],"resourceLimits":{)", limits,
             R"(},"extensions":{)", extensions, "}}");
}

PoolCapacity capacity_of(const NamedPoolConfig& pool) {
  return {pool.buffer_min, pool.buffer_max, pool.pool_min, pool.pool_max.value_or(kMaxPoolSize)};
}

}  // namespace

Result<NamedPoolConfig> read_pool(const YamlDocument& document, std::size_t item) {
  const auto& value = document.nodes[item];
  if (value.kind != Kind::map) return bad("", "must have name, image and buffer_min or buffer_max");
  NamedPoolConfig pool;
  for (const auto& member : value.members) CHECK_OK(read_member(pool, member.name, document.nodes[member.node]));
  if (!is_pool_name(pool.name)) return bad("name", "must be lowercase letters, digits, '-' and '.', at most 253");
  pool.buffer_max = std::max(pool.buffer_max, pool.buffer_min);
  if (auto fits = check_capacity(capacity_of(pool)); !fits) return bad("", fits.error().what());
  if (auto judged = parse_create(as_request(pool), {}); !judged) return bad("", judged.error().what());
  return pool;
}

std::vector<PoolRecord> configured_pools(const Config& config, const CreateDefaults& given) {
  std::vector<PoolRecord> out;
  auto defaults = given;
  defaults.max_timeout_seconds.reset();
  for (const auto& pool : config.pools) {
    auto spec = parse_create(as_request(pool), defaults);
    if (spec) {
      out.push_back({pool.name, "", *std::move(spec), capacity_of(pool), {}});
    } else {
      log::error("pool of the configuration left out", {{"pool", pool.name}, {"error", spec.error().what()}});
    }
  }
  return out;
}

}  // namespace osb::daemon
