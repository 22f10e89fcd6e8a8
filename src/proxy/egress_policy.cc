#include "proxy/egress_policy.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/text.h"
#include "model/json.h"

namespace osb::proxy {
namespace {

constexpr std::string_view kState = R"({"status":"ok","mode":"deny_all","enforcementMode":"dns+nft")";
constexpr std::string_view kRefusal =
    "egress control is not available yet: this sandbox has no network; only the deny-all policy is in force\n";

http::Response refused() { return http::Response::text(403, std::string(kRefusal)); }
http::Response accepted(std::string_view more = {}) { return http::Response::json(200, cat(kState, more, "}")); }

bool says_deny(const boost::json::object& policy) {
  const auto* action = policy.if_contains("defaultAction");
  if (!action || action->is_null()) return true;
  return action->is_string() && iequals(std::string_view(action->get_string()), "deny");
}

bool has_rules(const boost::json::object& policy) {
  const auto* rules = policy.if_contains("egress");
  return rules && !rules->is_null() && !(rules->is_array() && rules->get_array().empty());
}

// Replacing the policy by deny-all is what already holds; anything else would be a promise we cannot keep.
http::Response replace(std::string_view body) {
  if (trim(body).empty()) return accepted();
  auto value = parse_json(body);
  if (!value) return http::Response::text(400, cat("invalid policy: ", value.error().what(), "\n"));
  if (value->is_null()) return accepted();
  const auto* policy = value->if_object();
  if (!policy) return http::Response::text(400, "invalid policy: expected an object\n");
  return says_deny(*policy) && !has_rules(*policy) ? accepted() : refused();
}

http::Response merge(std::string_view body) {
  auto value = parse_json(body);
  if (!value || !value->is_array() || value->get_array().empty()) return http::Response::text(400, "expected a non-empty array of rules\n");
  return refused();
}

// There are no rules, so no target can match; removing nothing succeeds.
http::Response remove(std::string_view body) {
  auto value = parse_json(body);
  if (!value || !value->is_array() || value->get_array().empty())
    return http::Response::text(400, "expected a non-empty array of targets\n");
  for (const auto& target : value->get_array())
    if (!target.is_string()) return http::Response::text(400, "expected a non-empty array of targets\n");
  return accepted(R"(,"reason":"no matching targets found")");
}

http::Response wrong_method(std::string_view allow) {
  auto answer = http::Response::text(405, "method not allowed\n");
  answer.headers.add("Allow", std::string(allow));
  return answer;
}

}  // namespace

bool is_egress_health(std::string_view method, std::string_view path) { return method == "GET" && path == "/healthz"; }

http::Response egress_answer(std::string_view method, std::string_view path, std::string_view body) {
  if (path == "/healthz") return method == "GET" ? http::Response::text(200, "ok") : wrong_method("GET");
  if (path.starts_with("/credential-vault")) return http::Response::text(501, "the credential vault is not available yet\n");
  if (path != "/policy") return http::Response::text(404, "not found\n");
  if (method == "GET") return accepted(R"(,"policy":{"defaultAction":"deny","egress":[]})");
  if (method == "PUT" || method == "POST") return replace(body);
  if (method == "PATCH") return merge(body);
  if (method == "DELETE") return remove(body);
  return wrong_method("GET, POST, PUT, PATCH, DELETE");
}

}  // namespace osb::proxy
