#include "model/create_shape.h"

#include <cmath>
#include <limits>

#include "base/text.h"
#include "model/create_request.h"

namespace osb {
namespace {

namespace json = boost::json;

Error wrong(std::string_view field, std::string_view why) {
  return Error(Errc::malformed, cat(field, ": ", why)).with_code("SANDBOX::INVALID_PARAMETER").at(field);
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

// A member that is absent or null reads as absent everywhere.
const json::value* member(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

Result<const json::object*> object_member(const json::object& in, std::string_view name) {
  const auto* value = member(in, name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return wrong(name, "must be an object");
  return &value->get_object();
}

Result<std::optional<std::string>> string_member(const json::object& in, std::string_view name, std::string_view field) {
  const auto* value = member(in, name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return wrong(field, "must be a string");
  return std::optional<std::string>(std::string(value->get_string()));
}

Result<std::string> required_string(const json::object& in, std::string_view name, std::string_view field) {
  TRY(auto text, string_member(in, name, field));
  if (!text || is_blank(*text)) return wrong(field, "is required and must not be blank");
  return *std::move(text);
}

Result<bool> bool_member(const json::object& in, std::string_view name, std::string_view field) {
  const auto* value = member(in, name);
  if (value == nullptr) return false;
  if (!value->is_bool()) return wrong(field, "must be true or false");
  return value->get_bool();
}

enum class Nulls { refused, skipped };

Result<StringMap> map_member(const json::object& in, std::string_view name, Nulls nulls) {
  StringMap out;
  TRY(const auto* object, object_member(in, name));
  if (object == nullptr) return out;
  for (const auto& [key, value] : *object) {
    if (value.is_null() && nulls == Nulls::skipped) continue;
    if (!value.is_string()) return wrong(cat(name, ".", std::string_view(key).substr(0, 80)), "must be a string");
    out.emplace(key, value.get_string());
  }
  return out;
}

Result<> read_image(const json::object& body, CreateShape& shape) {
  TRY(const auto* image, object_member(body, "image"));
  if (image == nullptr) return Ok{};
  TRY(shape.image, required_string(*image, "uri", "image.uri"));
  TRY(const auto* auth, object_member(*image, "auth"));
  if (auth == nullptr) return Ok{};
  TRY(auto username, string_member(*auth, "username", "image.auth.username"));
  TRY(auto password, string_member(*auth, "password", "image.auth.password"));
  shape.image_auth = {username.value_or(""), password.value_or("")};
  return Ok{};
}

Result<> read_platform(const json::object& body, CreateShape& shape) {
  TRY(const auto* platform, object_member(body, "platform"));
  if (platform == nullptr) return Ok{};
  TRY(auto os, required_string(*platform, "os", "platform.os"));
  TRY(auto arch, required_string(*platform, "arch", "platform.arch"));
  if (os != "linux" && os != "windows") return wrong("platform.os", "must be linux or windows");
  if (arch != "amd64" && arch != "arm64") return wrong("platform.arch", "must be amd64 or arm64");
  shape.platform.emplace(std::move(os), std::move(arch));
  return Ok{};
}

// Whole numbers only; what is past 64 bits stays "very large" so that the cap refuses it with its own words.
std::optional<std::int64_t> whole_number(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) return std::numeric_limits<std::int64_t>::max();
  if (!value.is_double() || value.get_double() != std::floor(value.get_double())) return std::nullopt;
  double number = value.get_double();
  if (number >= 9e18) return std::numeric_limits<std::int64_t>::max();
  if (number <= -9e18) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(number);
}

Result<> read_timeout(const json::object& body, CreateShape& shape) {
  const auto* value = member(body, "timeout");
  if (value == nullptr) return Ok{};
  shape.timeout = whole_number(*value);
  if (!shape.timeout) return wrong("timeout", "must be a whole number of seconds");
  if (*shape.timeout < kMinTimeoutSeconds) return wrong("timeout", cat("must be at least ", kMinTimeoutSeconds, " seconds"));
  return Ok{};
}

Result<> read_entrypoint(const json::object& body, CreateShape& shape) {
  const auto* value = member(body, "entrypoint");
  if (value == nullptr) return Ok{};
  if (!value->is_array()) return wrong("entrypoint", "must be a list of strings");
  if (value->get_array().empty()) return wrong("entrypoint", "must have at least one item");
  auto& out = shape.entrypoint.emplace();
  for (const auto& item : value->get_array()) {
    if (!item.is_string()) return wrong(cat("entrypoint[", out.size(), "]"), "must be a string");
    out.emplace_back(item.get_string());
  }
  return Ok{};
}

Result<bool> is_allow(const json::object& in, std::string_view name, std::string_view field, bool required) {
  TRY(auto action, string_member(in, name, field));
  if (!action && required) return wrong(field, "is required");
  if (action && *action != "allow" && *action != "deny") return wrong(field, "must be allow or deny");
  return action == "allow";
}

Result<bool> read_network_policy(const json::object& policy) {
  TRY(bool allows, is_allow(policy, "defaultAction", "networkPolicy.defaultAction", false));
  const auto* rules = member(policy, "egress");
  if (rules == nullptr) return allows;
  if (!rules->is_array()) return wrong("networkPolicy.egress", "must be a list");
  for (std::size_t i = 0; i < rules->get_array().size(); ++i) {
    auto field = cat("networkPolicy.egress[", i, "]");
    const auto& rule = rules->get_array()[i];
    if (!rule.is_object()) return wrong(field, "must be an object");
    TRY(bool rule_allows, is_allow(rule.get_object(), "action", cat(field, ".action"), true));
    if (auto target = required_string(rule.get_object(), "target", cat(field, ".target")); !target) return std::move(target).error();
    allows = allows || rule_allows;
  }
  return allows;
}

Result<> read_network(const json::object& body, CreateShape& shape, bool& has_policy) {
  TRY(const auto* policy, object_member(body, "networkPolicy"));
  has_policy = policy != nullptr;
  if (has_policy) {
    TRY(shape.network_allows, read_network_policy(*policy));
  }
  TRY(const auto* proxy, object_member(body, "credentialProxy"));
  if (proxy != nullptr) {
    TRY(shape.credential_proxy, bool_member(*proxy, "enabled", "credentialProxy.enabled"));
  }
  return Ok{};
}

Result<> read_volumes(const json::object& body, CreateShape& shape) {
  const auto* value = member(body, "volumes");
  if (value == nullptr) return Ok{};
  if (!value->is_array()) return wrong("volumes", "must be a list");
  for (std::size_t i = 0; i < value->get_array().size(); ++i)
    if (!value->get_array()[i].is_object()) return wrong(cat("volumes[", i, "]"), "must be an object");
  shape.volumes = *value;
  return Ok{};
}

// Rules between members.
Result<> check_together(const json::object& body, const CreateShape& shape, bool has_policy) {
  auto pool = shape.extensions.find("poolRef");
  if (pool != shape.extensions.end() && !is_blank(pool->second)) {
    if (shape.snapshot_id) return wrong("snapshotId", "cannot be used together with extensions.poolRef");
    if (shape.credential_proxy) return wrong("credentialProxy", "cannot be used together with extensions.poolRef");
    return Ok{};
  }
  if (shape.credential_proxy && !has_policy) return wrong("credentialProxy", "needs networkPolicy");
  if (shape.image && shape.snapshot_id) return wrong("image", "give either image or snapshotId, not both");
  if (!shape.image && !shape.snapshot_id) return wrong("image", "is required (or snapshotId)");
  if (shape.image && !shape.entrypoint) return wrong("entrypoint", "is required with image");
  if (member(body, "resourceLimits") == nullptr) return wrong("resourceLimits", "is required; {} means the defaults");
  return Ok{};
}

}  // namespace

Result<CreateShape> read_create_shape(const json::object& body) {
  CreateShape shape;
  bool has_policy = false;
  CHECK_OK(read_image(body, shape));
  TRY(shape.snapshot_id, string_member(body, "snapshotId", "snapshotId"));
  if (shape.snapshot_id && is_blank(*shape.snapshot_id)) shape.snapshot_id.reset();
  CHECK_OK(read_platform(body, shape));
  CHECK_OK(read_timeout(body, shape));
  TRY(shape.resource_limits, map_member(body, "resourceLimits", Nulls::refused));
  TRY(shape.env, map_member(body, "env", Nulls::skipped));
  TRY(shape.metadata, map_member(body, "metadata", Nulls::refused));
  CHECK_OK(read_entrypoint(body, shape));
  CHECK_OK(read_network(body, shape, has_policy));
  TRY(shape.secure_access, bool_member(body, "secureAccess", "secureAccess"));
  CHECK_OK(read_volumes(body, shape));
  TRY(shape.extensions, map_member(body, "extensions", Nulls::refused));
  CHECK_OK(check_together(body, shape, has_policy));
  return shape;
}

}  // namespace osb
