// Diagnostics of one sandbox, as the daemon tells them.
#pragma once
#include <boost/json/object.hpp>
#include <string_view>

#include "base/text.h"
#include "cli/api.h"

namespace osb::cli {

// `kind`: logs, events, inspect, summary. The object with "content", "truncated" and "warnings".
inline Result<boost::json::object> read_diagnostics(Api& api, std::string_view id, std::string_view kind, std::string_view scope) {
  TRY(auto reply, api.call("GET", cat("/v1/sandboxes/", id, "/diagnostics/", kind, "?scope=", scope)));
  return parse_object(reply.body);
}

}  // namespace osb::cli
