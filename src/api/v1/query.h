// Query parameters of the lifecycle API. Wrong types and numbers out of range are Errc::malformed (422).
#pragma once
#include <optional>
#include <string_view>

#include "api/render.h"
#include "base/result.h"
#include "lifecycle/service.h"

namespace osb::api::v1 {

inline constexpr std::size_t kMaxPageSize = 200;

struct ListQuery {
  lifecycle::Filter filter;
  Page page;
  bool matches_nothing = false;  // the filter names only states that do not exist, or asks one key for two values
};

// state (repeatable), metadata (a query string inside a parameter), page, pageSize; others are ignored.
Result<ListQuery> parse_list_query(std::string_view raw_query);

struct SnapshotQuery {
  lifecycle::SnapshotFilter filter;
  Page page;
  bool matches_nothing = false;
};
// sandboxId, state (repeatable), page, pageSize; others are ignored.
Result<SnapshotQuery> parse_snapshot_query(std::string_view raw_query);

struct EndpointQuery {
  bool use_server_proxy = false;
  std::optional<std::int64_t> expires;  // unix seconds
};
Result<EndpointQuery> parse_endpoint_query(std::string_view raw_query);

}  // namespace osb::api::v1
