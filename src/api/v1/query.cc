#include "api/v1/query.h"

#include "base/text.h"
#include "http/http.h"

namespace osb::api::v1 {
namespace {

Error bad_metadata() {
  return Error(Errc::invalid_argument, "The metadata filter must be key=value pairs joined by '&'.")
      .with_code("INVALID_METADATA_FORMAT")
      .at("metadata")
      .with_hint("Example: metadata=team%3Dblue%26env%3Dtest");
}

Result<std::size_t> parse_number(std::string_view name, std::string_view text, std::size_t max) {
  auto number = parse_int<std::size_t>(text);
  if (number && *number >= 1 && *number <= max) return *number;
  return Error(Errc::malformed, cat(name, " must be a whole number from 1 to ", max, ".")).at(name);
}

// One nested pair; '+' and percent-encoding count once more in here.
Result<> add_pair(ListQuery& query, std::string_view segment) {
  auto equals = segment.find('=');
  if (equals == std::string_view::npos) return bad_metadata();
  auto key = http::percent_decode(segment.substr(0, equals), true);
  auto value = http::percent_decode(segment.substr(equals + 1), true);
  if (!key || !value || key->empty()) return bad_metadata();
  auto [at, added] = query.filter.metadata.try_emplace(*std::move(key), *value);
  if (!added && at->second != *value) query.matches_nothing = true;
  return Ok{};
}

Result<> add_metadata(ListQuery& query, std::string_view text) {
  if (text.empty()) return Ok{};
  for (auto segment : split(text, '&')) CHECK_OK(add_pair(query, segment));
  return Ok{};
}

// Large enough for every list that fits in memory, small enough that page * pageSize cannot overflow.
constexpr std::size_t kMaxPage = 1'000'000'000;

Result<bool> parse_bool(std::string_view name, std::string_view text) {
  for (std::string_view yes : {"true", "1", "yes", "on"})
    if (iequals(text, yes)) return true;
  for (std::string_view no : {"false", "0", "no", "off"})
    if (iequals(text, no)) return false;
  return Error(Errc::malformed, cat(name, " must be true or false.")).at(name);
}

}  // namespace

Result<ListQuery> parse_list_query(std::string_view raw_query) {
  ListQuery query;
  TRY(auto pairs, http::parse_query(raw_query));
  bool asked_state = false;
  for (const auto& [name, value] : pairs) {
    if (name == "state") {
      asked_state = true;
      if (auto state = parse_state(value)) query.filter.states.push_back(*state);
    } else if (name == "metadata") {
      CHECK_OK(add_metadata(query, value));
    } else if (name == "page") {
      TRY(query.page.number, parse_number(name, value, kMaxPage));
    } else if (name == "pageSize") {
      TRY(query.page.size, parse_number(name, value, kMaxPageSize));
    }
  }
  if (asked_state && query.filter.states.empty()) query.matches_nothing = true;
  return query;
}

Result<SnapshotQuery> parse_snapshot_query(std::string_view raw_query) {
  SnapshotQuery query;
  TRY(auto pairs, http::parse_query(raw_query));
  bool asked_state = false;
  for (const auto& [name, value] : pairs) {
    if (name == "state") {
      asked_state = true;
      if (auto state = parse_snapshot_state(value)) query.filter.states.push_back(*state);
    } else if (name == "sandboxId") {
      query.filter.sandbox = value;
    } else if (name == "name") {
      query.filter.name = value;
    } else if (name == "page") {
      TRY(query.page.number, parse_number(name, value, kMaxPage));
    } else if (name == "pageSize") {
      TRY(query.page.size, parse_number(name, value, kMaxPageSize));
    }
  }
  query.matches_nothing = asked_state && query.filter.states.empty();
  return query;
}

Result<EndpointQuery> parse_endpoint_query(std::string_view raw_query) {
  EndpointQuery query;
  TRY(auto pairs, http::parse_query(raw_query));
  for (const auto& [name, value] : pairs) {
    if (name == "use_server_proxy") {
      TRY(query.use_server_proxy, parse_bool(name, value));
    } else if (name == "expires") {
      query.expires = parse_int<std::int64_t>(value);
      if (!query.expires) return Error(Errc::malformed, "expires must be a whole number of seconds.").at("expires");
    }
  }
  return query;
}

}  // namespace osb::api::v1
