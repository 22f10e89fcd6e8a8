// The shape of a create request: members with the right types and the rules between members. Values are
// judged later (create_request.cc). Everything refused here is Errc::malformed.
#pragma once
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/sandbox.h"

namespace osb {

struct CreateShape {
  std::optional<std::string> image;  // image.uri, not blank
  ImageAuth image_auth;
  std::optional<std::string> snapshot_id;  // not blank
  std::optional<std::pair<std::string, std::string>> platform;
  std::optional<std::int64_t> timeout;  // at least the minimum
  StringMap resource_limits;
  StringMap env;  // without the null ones
  StringMap metadata;
  std::optional<std::vector<std::string>> entrypoint;  // at least one
  StringMap extensions;
  bool network_allows = false;  // some rule or the default lets traffic through
  bool credential_proxy = false;
  bool secure_access = false;
  boost::json::value volumes;  // null, or a list of objects
};

Result<CreateShape> read_create_shape(const boost::json::object& body);

}  // namespace osb
