#include "model/pool_request.h"

#include <algorithm>
#include <boost/json.hpp>
#include <initializer_list>

#include "base/text.h"
#include "model/json.h"

namespace osb {
namespace json = boost::json;
namespace {

Error wrong(std::string_view field, std::string_view why) {
  return Error(Errc::malformed, cat(field, " ", why, ".")).with_code("SANDBOX::INVALID_PARAMETER").at(field);
}

Error refuse(std::string_view field, std::string_view why) {
  return Error(Errc::invalid_argument, cat(field, " ", why, ".")).with_code("SANDBOX::INVALID_PARAMETER").at(field);
}

std::string below(std::string_view field, std::string_view name) { return field.empty() ? std::string(name) : cat(field, ".", name); }

Result<> only(const json::object& in, std::string_view field, std::initializer_list<std::string_view> known) {
  for (const auto& member : in) {
    std::string_view name = member.key();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::vector<std::string_view> names(known);
    std::string list;
    for (auto each : names) list += cat(list.empty() ? "" : ", ", each);
    return refuse(below(field, name.substr(0, 80)), "means nothing to this server").with_hint(cat("known here: ", list));
  }
  return Ok{};
}

Result<const json::object*> object_at(const json::object& in, std::string_view field, std::string_view name, bool required) {
  const auto* value = in.if_contains(name);
  if (value == nullptr || value->is_null()) {
    if (required) return wrong(below(field, name), "is required");
    return static_cast<const json::object*>(nullptr);
  }
  if (!value->is_object()) return wrong(below(field, name), "must be an object");
  return &value->get_object();
}

Result<std::uint32_t> count_at(const json::object& in, std::string_view name) {
  auto field = below("capacitySpec", name);
  const auto* value = in.if_contains(name);
  if (value == nullptr) return wrong(field, "is required");
  if (!value->is_int64() && !value->is_uint64()) return wrong(field, "must be a whole number");
  boost::system::error_code ec;
  auto number = value->to_number<std::int64_t>(ec);
  if (ec || number < 0) return wrong(field, "must not be negative");
  if (number > kMaxPoolSize) return refuse(field, cat("is at most ", kMaxPoolSize));
  return static_cast<std::uint32_t>(number);
}

Result<PoolCapacity> read_capacity(const json::object& body) {
  TRY(const auto* in, object_at(body, "", "capacitySpec", true));
  CHECK_OK(only(*in, "capacitySpec", {"bufferMin", "bufferMax", "poolMin", "poolMax"}));
  PoolCapacity out;
  TRY(out.buffer_min, count_at(*in, "bufferMin"));
  TRY(out.buffer_max, count_at(*in, "bufferMax"));
  TRY(out.pool_min, count_at(*in, "poolMin"));
  TRY(out.pool_max, count_at(*in, "poolMax"));
  CHECK_OK(check_capacity(out));
  return out;
}

// ---- a pod template becomes the create request it stands for ------------------------------------------------------

Result<> take_limits(const json::object& container, json::object& out) {
  std::string at = "template.spec.containers[0].resources";
  TRY(const auto* resources, object_at(container, "template.spec.containers[0]", "resources", false));
  json::object limits;
  if (resources != nullptr) {
    // What a scheduler would set aside: here every sandbox may use its limits.
    CHECK_OK(only(*resources, at, {"limits", "requests"}));
    TRY(const auto* given, object_at(*resources, at, "limits", false));
    if (given != nullptr) {
      CHECK_OK(only(*given, at + ".limits", {"cpu", "memory", "ephemeral-storage"}));
      for (const auto& [name, value] : *given) {
        auto field = cat(at, ".limits.", std::string_view(name));
        bool text = value.is_string() || value.is_int64() || value.is_double();
        if (!text) return wrong(field, "must be a quantity such as 500m or 512Mi");
        json::value quantity = value.is_string() ? value : json::value(json::serialize(value));
        limits[name == "ephemeral-storage" ? "disk" : std::string_view(name)] = quantity;
      }
    }
  }
  out["resourceLimits"] = limits;
  return Ok{};
}

Result<> take_env(const json::object& container, json::object& out) {
  const auto* list = container.if_contains("env");
  if (list == nullptr || list->is_null()) return Ok{};
  if (!list->is_array()) return wrong("template.spec.containers[0].env", "must be a list");
  json::object env;
  for (std::size_t i = 0; i < list->get_array().size(); ++i) {
    auto field = cat("template.spec.containers[0].env[", i, "]");
    const auto& item = list->get_array()[i];
    if (!item.is_object()) return wrong(field, "must be an object");
    CHECK_OK(only(item.get_object(), field, {"name", "value"}));
    const auto* name = item.get_object().if_contains("name");
    const auto* value = item.get_object().if_contains("value");
    if (name == nullptr || !name->is_string()) return wrong(cat(field, ".name"), "is required");
    if (value != nullptr && !value->is_string()) return wrong(cat(field, ".value"), "must be text");
    env[name->get_string()] = value == nullptr ? json::value("") : *value;
  }
  out["env"] = env;
  return Ok{};
}

Result<> take_command(const json::object& container, json::object& out) {
  json::array words;
  for (std::string_view name : {"command", "args"}) {
    const auto* list = container.if_contains(name);
    if (list == nullptr || list->is_null()) continue;
    if (!list->is_array()) return wrong(cat("template.spec.containers[0].", name), "must be a list");
    words.insert(words.end(), list->get_array().begin(), list->get_array().end());
  }
  if (!words.empty()) out["entrypoint"] = words;
  return Ok{};
}

Result<json::object> from_pod(const json::object& pod) {
  CHECK_OK(only(pod, "template", {"metadata", "spec"}));
  TRY(const auto* spec, object_at(pod, "template", "spec", true));
  CHECK_OK(only(*spec, "template.spec", {"containers"}));
  const auto* containers = spec->if_contains("containers");
  bool one =
      containers != nullptr && containers->is_array() && containers->get_array().size() == 1 && containers->get_array()[0].is_object();
  if (!one) return wrong("template.spec.containers", "must be a list of exactly one container");
  const auto& container = containers->get_array()[0].get_object();
  CHECK_OK(only(container, "template.spec.containers[0]", {"name", "image", "command", "args", "env", "resources"}));
  const auto* image = container.if_contains("image");
  if (image == nullptr || !image->is_string()) return wrong("template.spec.containers[0].image", "must name an image");
  json::object out{{"image", json::object{{"uri", *image}}}};
  CHECK_OK(take_limits(container, out));
  CHECK_OK(take_env(container, out));
  CHECK_OK(take_command(container, out));
  return out;
}

Result<json::object> from_ours(const json::object& in) {
  CHECK_OK(only(in, "template", {"image", "resourceLimits", "extensions", "entrypoint", "env"}));
  json::object out = in;
  if (const auto* image = in.if_contains("image"); image != nullptr && image->is_string()) out["image"] = json::object{{"uri", *image}};
  if (!out.contains("image")) return wrong("template.image", "is required");
  if (!out.contains("resourceLimits")) out["resourceLimits"] = json::object();
  return out;
}

Result<SandboxSpec> read_template(const json::object& body, CreateDefaults defaults) {
  TRY(const auto* in, object_at(body, "", "template", true));
  TRY(auto request, in->contains("spec") ? from_pod(*in) : from_ours(*in));
  if (!request.contains("entrypoint")) request["entrypoint"] = json::array{"tail", "-f", "/dev/null"};
  defaults.max_timeout_seconds.reset();  // each sandbox has its own
  auto spec = parse_create(json::serialize(request), defaults);
  if (!spec) return std::move(spec).error().in("template");
  if (!pool_of(*spec).empty()) return refuse("template.extensions.poolRef", "cannot be part of a pool");
  return spec;
}

}  // namespace

bool is_pool_name(std::string_view name) {
  auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 253 && plain(name.front()) && plain(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return plain(c) || c == '-' || c == '.'; });
}

Result<> check_capacity(const PoolCapacity& capacity) {
  if (capacity.buffer_min > capacity.buffer_max) return refuse("capacitySpec.bufferMin", "is more than bufferMax");
  if (capacity.pool_min > capacity.pool_max) return refuse("capacitySpec.poolMin", "is more than poolMax");
  if (capacity.buffer_max > capacity.pool_max) return refuse("capacitySpec.bufferMax", "is more than poolMax");
  return Ok{};
}

Result<PoolRecord> parse_pool(std::string_view body, const CreateDefaults& defaults) {
  TRY(auto object, parse_json_object(body));
  CHECK_OK(only(object, "", {"name", "template", "capacitySpec"}));
  PoolRecord out;
  const auto* name = object.if_contains("name");
  if (name == nullptr || !name->is_string()) return wrong("name", "is required");
  out.name = name->get_string();
  if (!is_pool_name(out.name)) return wrong("name", "must be lowercase letters, digits, '-' and '.', at most 253");
  TRY(out.spec, read_template(object, defaults));
  TRY(out.capacity, read_capacity(object));
  return out;
}

Result<PoolCapacity> parse_pool_resize(std::string_view body) {
  TRY(auto object, parse_json_object(body));
  CHECK_OK(only(object, "", {"capacitySpec"}));
  return read_capacity(object);
}

}  // namespace osb
