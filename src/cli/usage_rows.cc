#include "cli/usage_rows.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <tuple>

#include "base/text.h"
#include "cli/table.h"
#include "cli/units.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr std::size_t kShortId = 12;  // enough to tell a screenful apart, and a prefix is an id everywhere

const json::value* member_of(const json::object& stats, std::string_view group, std::string_view member) {
  const auto* object = stats.if_contains(group);
  return object != nullptr && object->is_object() ? object->get_object().if_contains(member) : nullptr;
}

std::string percent(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", value);
  return text;
}

std::string pair_of(std::uint64_t used, std::uint64_t limit) { return cat(format_bytes(used), " / ", format_bytes(limit)); }

Result<UsageRow> read_one(Api& api, const json::object& sandbox) {
  UsageRow row{text_of(sandbox, "id"), text_of(sandbox, "metadata", "name"), text_of(sandbox, "status", "state"), {}};
  TRY(auto reply, api.call("GET", cat("/v1/sandboxes/", row.id, "/stats")));
  TRY(row.stats, parse_object(reply.body));
  return row;
}

bool is_over(const Error& error) { return error.kind() == Errc::not_found || error.kind() == Errc::conflict; }

}  // namespace

std::uint64_t UsageRow::number(std::string_view group, std::string_view member) const {
  const auto* value = member_of(stats, group, member);
  if (value == nullptr) return 0;
  if (value->is_uint64()) return value->get_uint64();
  return value->is_int64() && value->get_int64() > 0 ? static_cast<std::uint64_t>(value->get_int64()) : 0;
}

double UsageRow::cpu_percent() const {
  const auto* value = member_of(stats, "cpu", "usedPercent");
  return value != nullptr && value->is_double() ? value->get_double() : 0;
}

Result<std::vector<UsageRow>> read_usage(Api& api, const std::vector<std::string>& names) {
  std::vector<UsageRow> rows;
  for (const auto& name : names) {
    TRY(auto id, api.resolve(name));
    TRY(auto sandbox, api.get(id));
    TRY(auto row, read_one(api, sandbox));
    rows.push_back(std::move(row));
  }
  if (!names.empty()) return rows;
  TRY(auto sandboxes, api.list({.states = {"Running", "Pausing", "Paused", "Resuming"}, .metadata = {}}));
  for (const auto& sandbox : sandboxes) {
    auto row = read_one(api, sandbox);
    if (!row && !is_over(row.error())) return std::move(row).error();
    if (row) rows.push_back(*std::move(row));
  }
  return rows;
}

void sort_usage(std::vector<UsageRow>& rows, UsageOrder order) {
  if (order == UsageOrder::as_listed) return;
  using Key = std::tuple<double, std::uint64_t, std::string_view>;
  auto key = [order](const UsageRow& row) {
    return Key(order == UsageOrder::cpu ? row.cpu_percent() : 0, row.number("memory", "usedBytes"), row.id);
  };
  std::sort(rows.begin(), rows.end(), [&key](const UsageRow& a, const UsageRow& b) { return key(a) > key(b); });
}

std::string usage_table(const std::vector<UsageRow>& rows) {
  Table table({"ID", "NAME", "STATE", "CPU", "MEMORY", "PEAK", "DISK", "PIDS", "NET IN/OUT", "THROTTLED", "OOM"});
  for (const auto& row : rows) {
    auto throttled = std::chrono::seconds(row.number("cpu", "throttledNanos") / 1'000'000'000);
    table.row({row.id.substr(0, kShortId), row.name, row.state, percent(row.cpu_percent()),
               pair_of(row.number("memory", "usedBytes"), row.number("memory", "limitBytes")),
               format_bytes(row.number("memory", "peakBytes")), pair_of(row.number("disk", "usedBytes"), row.number("disk", "limitBytes")),
               cat(row.number("pids", "current"), "/", row.number("pids", "limit")),
               cat(format_bytes(row.number("network", "receivedBytes")), " / ", format_bytes(row.number("network", "sentBytes"))),
               format_duration(throttled), cat(row.number("memory", "oomKills"))});
  }
  return table.render();
}

}  // namespace osb::cli
