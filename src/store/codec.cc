#include "store/codec.h"

#include <boost/json/value.hpp>

#include "base/text.h"
#include "model/json.h"

namespace osb::store {
namespace {

namespace json = boost::json;

// What a parsed request can hold at most, every byte escaped.
constexpr std::size_t kUsualSpecBytes = 600;
constexpr JsonLimits kSpecLimits{.bytes = 8 * 1024 * 1024, .depth = 8};

Error damaged(std::string_view name) { return {Errc::internal, cat("member ", name, " of a stored record is damaged")}; }

void write_limits(std::string& out, const Limits& limits) {
  append_all(out, R"("limits":{"memory_bytes":)", limits.memory_bytes, R"(,"cpu_millis":)", limits.cpu_millis, R"(,"pids":)", limits.pids,
             R"(,"disk_bytes":)", limits.disk_bytes, R"(,"disk_inodes":)", limits.disk_inodes, R"(,"io_bytes_per_second":)",
             limits.io_bytes_per_second, R"(,"io_operations_per_second":)", limits.io_operations_per_second, "}");
}

void write_policy(std::string& out, const Policy& policy) {
  append_all(out, R"("policy":{"user":")", name_of(policy.user), R"(","syscalls":")", name_of(policy.syscalls), R"(","root":")",
             policy.root == RootMode::read_only ? "ro" : "rw", R"("})");
}

// Fills `out` when the member is there; absent keeps the default.
template <class N>
Result<> take_number(const json::object& in, std::string_view name, N& out) {
  const auto* value = in.if_contains(name);
  if (value == nullptr) return Ok{};
  boost::system::error_code ec;
  auto number = value->to_number<N>(ec);
  if (ec || value->is_double()) return damaged(name);
  out = number;
  return Ok{};
}

Result<> take_text(const json::object& in, std::string_view name, std::string& out) {
  const auto* value = in.if_contains(name);
  if (value == nullptr) return Ok{};
  if (!value->is_string()) return damaged(name);
  out = value->get_string();
  return Ok{};
}

Result<> take_list(const json::value& value, std::string_view name, std::vector<std::string>& out) {
  if (!value.is_array()) return damaged(name);
  for (const auto& item : value.get_array()) {
    if (!item.is_string()) return damaged(name);
    out.emplace_back(item.get_string());
  }
  return Ok{};
}

Result<> take_map(const json::object& in, std::string_view name, StringMap& out) {
  const auto* value = in.if_contains(name);
  if (value == nullptr) return Ok{};
  if (!value->is_object()) return damaged(name);
  for (const auto& [key, item] : value->get_object()) {
    if (!item.is_string()) return damaged(name);
    out.emplace(key, item.get_string());
  }
  return Ok{};
}

Result<const json::object*> part(const json::object& in, std::string_view name) {
  const auto* value = in.if_contains(name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return damaged(name);
  return &value->get_object();
}

Result<> take_limits(const json::object& in, Limits& limits) {
  TRY(const auto* from, part(in, "limits"));
  if (from == nullptr) return Ok{};
  CHECK_OK(take_number(*from, "memory_bytes", limits.memory_bytes));
  CHECK_OK(take_number(*from, "cpu_millis", limits.cpu_millis));
  CHECK_OK(take_number(*from, "pids", limits.pids));
  CHECK_OK(take_number(*from, "disk_bytes", limits.disk_bytes));
  CHECK_OK(take_number(*from, "disk_inodes", limits.disk_inodes));
  CHECK_OK(take_number(*from, "io_bytes_per_second", limits.io_bytes_per_second));
  return take_number(*from, "io_operations_per_second", limits.io_operations_per_second);
}

Result<> take_policy(const json::object& in, Policy& policy) {
  TRY(const auto* from, part(in, "policy"));
  if (from == nullptr) return Ok{};
  std::string user(name_of(policy.user)), syscalls(name_of(policy.syscalls)), root("ro");
  CHECK_OK(take_text(*from, "user", user));
  CHECK_OK(take_text(*from, "syscalls", syscalls));
  CHECK_OK(take_text(*from, "root", root));
  auto mode = parse_user_mode(user);
  auto profile = parse_syscall_profile(syscalls);
  if (!mode || !profile || (root != "ro" && root != "rw")) return damaged("policy");
  policy = {*mode, *profile, root == "ro" ? RootMode::read_only : RootMode::writable};
  return Ok{};
}

void write_volumes(std::string& out, const std::vector<VolumeSpec>& volumes) {
  out += R"(,"volumes":[)";
  for (const auto& volume : volumes) {
    if (out.back() != '[') out += ',';
    append_all(out, R"({"name":)", json_string(volume.name), R"(,"host_path":)", json_string(volume.host_path), R"(,"claim":)",
               json_string(volume.claim), R"(,"mount_path":)", json_string(volume.mount_path), R"(,"sub_path":)",
               json_string(volume.sub_path), R"(,"volume_id":)", json_string(volume.volume_id), R"(,"read_only":)", volume.read_only,
               R"(,"delete_with_sandbox":)", volume.delete_with_sandbox, "}");
  }
  out += ']';
}

Result<> take_bool(const json::object& in, std::string_view name, bool& out) {
  const auto* value = in.if_contains(name);
  if (value == nullptr) return Ok{};
  if (!value->is_bool()) return damaged(name);
  out = value->get_bool();
  return Ok{};
}

Result<> take_volumes(const json::object& in, std::vector<VolumeSpec>& out) {
  const auto* value = in.if_contains("volumes");
  if (value == nullptr) return Ok{};
  if (!value->is_array()) return damaged("volumes");
  for (const auto& item : value->get_array()) {
    if (!item.is_object()) return damaged("volumes");
    const auto& object = item.get_object();
    auto& volume = out.emplace_back();
    CHECK_OK(take_text(object, "name", volume.name));
    CHECK_OK(take_text(object, "host_path", volume.host_path));
    CHECK_OK(take_text(object, "claim", volume.claim));
    CHECK_OK(take_text(object, "mount_path", volume.mount_path));
    CHECK_OK(take_text(object, "sub_path", volume.sub_path));
    CHECK_OK(take_text(object, "volume_id", volume.volume_id));
    CHECK_OK(take_bool(object, "read_only", volume.read_only));
    CHECK_OK(take_bool(object, "delete_with_sandbox", volume.delete_with_sandbox));
  }
  return Ok{};
}

Result<> take_optionals(const json::object& in, SandboxSpec& spec) {
  if (in.contains("timeout_seconds")) {
    CHECK_OK(take_number(in, "timeout_seconds", spec.timeout_seconds.emplace()));
  }
  TRY(const auto* platform, part(in, "platform"));
  if (platform != nullptr) {
    auto& [os, arch] = spec.platform.emplace();
    CHECK_OK(take_text(*platform, "os", os));
    CHECK_OK(take_text(*platform, "arch", arch));
  }
  CHECK_OK(take_text(in, "snapshot_id", spec.snapshot_id));
  if (const auto* layers = in.if_contains("layers")) CHECK_OK(take_list(*layers, "layers", spec.layers));
  CHECK_OK(take_volumes(in, spec.volumes));
  return take_bool(in, "secure_access", spec.secure_access);
}

// FNV-1a. Lengths are part of it, so that bytes cannot move from one field to its neighbour unnoticed.
class Sum {
 public:
  Sum& add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    for (char c : text) mix(static_cast<unsigned char>(c));
    return *this;
  }
  Sum& add(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) mix(static_cast<unsigned char>(static_cast<std::uint64_t>(number) >> shift));
    return *this;
  }
  std::int64_t value() const { return static_cast<std::int64_t>(hash_); }

 private:
  void mix(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3ull; }
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

}  // namespace

std::string write_spec(const SandboxSpec& spec) {
  std::string out;
  out.reserve(kUsualSpecBytes);
  out += R"({"image":)";
  append_json_string(out, spec.image);
  if (!spec.image_digest.empty()) append_all(out, R"(,"image_digest":)", json_string(spec.image_digest));
  out += R"(,"entrypoint":)";
  append_json_list(out, spec.entrypoint);
  out += R"(,"env":)";
  append_json_map(out, spec.env);
  out += R"(,"metadata":)";
  append_json_map(out, spec.metadata);
  out += R"(,"extensions":)";
  append_json_map(out, spec.extensions);
  out += ',';
  write_limits(out, spec.limits);
  out += ',';
  write_policy(out, spec.policy);
  if (spec.timeout_seconds) append_all(out, R"(,"timeout_seconds":)", *spec.timeout_seconds);
  if (spec.platform)
    append_all(out, R"(,"platform":{"os":)", json_string(spec.platform->first), R"(,"arch":)", json_string(spec.platform->second), "}");
  if (!spec.snapshot_id.empty()) append_all(out, R"(,"snapshot_id":)", json_string(spec.snapshot_id));
  if (!spec.volumes.empty()) write_volumes(out, spec.volumes);
  out += R"(,"layers":)";
  append_json_list(out, spec.layers);
  append_all(out, R"(,"secure_access":)", spec.secure_access, "}");
  return out;
}

Result<SandboxSpec> read_spec(std::string_view text) {
  TRY(auto in, parse_json_object(text, kSpecLimits));
  SandboxSpec spec;
  CHECK_OK(take_text(in, "image", spec.image));
  CHECK_OK(take_text(in, "image_digest", spec.image_digest));
  if (const auto* entrypoint = in.if_contains("entrypoint")) CHECK_OK(take_list(*entrypoint, "entrypoint", spec.entrypoint));
  CHECK_OK(take_map(in, "env", spec.env));
  CHECK_OK(take_map(in, "metadata", spec.metadata));
  CHECK_OK(take_map(in, "extensions", spec.extensions));
  CHECK_OK(take_limits(in, spec.limits));
  CHECK_OK(take_policy(in, spec.policy));
  CHECK_OK(take_optionals(in, spec));
  return spec;
}

std::int64_t sum_of(const Sandbox& sandbox, std::string_view spec) {
  Sum sum;
  sum.add(sandbox.id.text()).add(sandbox.owner).add(name_of(sandbox.status.state)).add(sandbox.status.reason).add(sandbox.status.message);
  sum.add(sandbox.status.changed_at.micros).add(sandbox.created_at.micros);
  sum.add(sandbox.expires_at ? sandbox.expires_at->micros : -1);
  sum.add(static_cast<std::int64_t>(sandbox.deadline_boot_nanos)).add(sandbox.boot_id).add(spec);
  return sum.value();
}

std::string write_list(const std::vector<std::string>& list) {
  std::string out;
  append_json_list(out, list);
  return out;
}

Result<std::vector<std::string>> read_list(std::string_view text) {
  TRY(auto value, parse_json(text, kSpecLimits));
  std::vector<std::string> out;
  CHECK_OK(take_list(value, "list", out));
  return out;
}

}  // namespace osb::store
