#include "model/volume_request.h"

#include <boost/json/object.hpp>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "model/quantity.h"

namespace osb {
namespace {

namespace json = boost::json;

Error wrong(std::string_view field, std::string_view why) {
  return Error(Errc::malformed, cat(field, ": ", why)).with_code("SANDBOX::INVALID_PARAMETER").at(field);
}

Error refuse(std::string_view code, std::string_view field, std::string_view why) {
  return Error(Errc::invalid_argument, cat(field, ": ", why)).with_code(cat("VOLUME::", code)).at(field);
}

const json::value* member(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

Result<std::optional<std::string>> text(const json::object& in, std::string_view name, std::string_view at) {
  const auto* value = member(in, name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return wrong(cat(at, ".", name), "must be a string");
  return std::optional<std::string>(std::string(value->get_string()));
}

Result<bool> flag(const json::object& in, std::string_view name, std::string_view at, bool otherwise) {
  const auto* value = member(in, name);
  if (value == nullptr) return otherwise;
  if (!value->is_bool()) return wrong(cat(at, ".", name), "must be true or false");
  return value->get_bool();
}

// Nothing that could mean another place than it says, or that the launcher's fixed messages could not carry.
bool is_plain(std::string_view path) {
  if (path.size() > kMaxMountPath) return false;
  for (char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  for (auto part : split(path, '/'))
    if (part == ".." || part == ".") return false;
  return true;
}

std::string without_double_slashes(std::string_view path) {
  std::string out;
  for (auto part : split(path, '/'))
    if (!part.empty()) out += cat("/", part);
  return out;
}

bool lies_at_or_below(std::string_view path, std::string_view top) {
  return path == top || (path.starts_with(top) && path.substr(top.size()).starts_with('/'));
}

// What the sandbox itself needs where it is.
Result<std::string> check_mount_path(const std::optional<std::string>& given, const std::string& field) {
  constexpr std::string_view kCode = "INVALID_MOUNT_PATH";
  if (!given || !given->starts_with('/')) return refuse(kCode, field, "must be an absolute path");
  if (!is_plain(*given)) return refuse(kCode, field, cat("must have at most ", kMaxMountPath, " plain characters and no '.' or '..'"));
  auto path = without_double_slashes(*given);
  for (std::string_view top : {"/proc", "/sys", "/dev"})
    if (lies_at_or_below(path, top)) return refuse(kCode, field, cat(top, " belongs to the sandbox itself"));
  for (std::string_view whole : {"", "/etc", "/run", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/home", "/var"})
    if (path == whole) return refuse(kCode, field, cat(path.empty() ? "/" : path, " cannot be covered; choose a directory of its own"));
  for (std::string_view file : {"/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/etc/machine-id"})
    if (lies_at_or_below(path, file)) return refuse(kCode, field, cat(file, " belongs to the sandbox itself"));
  return path;
}

Result<std::string> check_sub_path(const std::optional<std::string>& given, const std::string& field) {
  if (!given || given->empty()) return std::string();
  if (given->starts_with('/') || !is_plain(*given))
    return refuse("INVALID_SUB_PATH", field, "must be a relative path of plain characters without '.' and '..'");
  return without_double_slashes(*given).substr(1);
}

Result<> take_host(const json::object& host, const std::string& at, VolumeSpec& out) {
  TRY(auto path, text(host, "path", at));
  bool fine = path && path->starts_with('/') && path->size() <= 4095 && path->find('\0') == std::string::npos;
  if (fine)
    for (auto part : split(*path, '/')) fine = fine && part != "..";
  if (!fine) return refuse("INVALID_HOST_PATH", cat(at, ".path"), "must be an absolute path without '..'");
  out.host_path = *std::move(path);
  return Ok{};
}

Result<> take_claim(const json::object& pvc, const std::string& at, VolumeSpec& out) {
  TRY(auto name, text(pvc, "claimName", at));
  if (!name || !is_volume_name(*name, 253))
    return refuse("INVALID_PVC_NAME", cat(at, ".claimName"), "must be lowercase letters, digits and '-'");
  out.claim = *std::move(name);
  TRY(out.create_if_missing, flag(pvc, "createIfNotExists", at, true));
  TRY(out.delete_with_sandbox, flag(pvc, "deleteOnSandboxTermination", at, false));
  TRY(auto storage, text(pvc, "storage", at));
  if (!storage || storage->empty()) return Ok{};
  auto size = parse_volume_size(*storage);
  if (!size) return wrong(cat(at, ".storage"), size.error().what());
  out.size_bytes = *size;
  return Ok{};
}

Result<> take_backend(const json::object& item, const std::string& at, VolumeSpec& out) {
  const json::object* found = nullptr;
  std::string_view kind;
  for (std::string_view name : {"host", "pvc", "ossfs"}) {
    const auto* value = member(item, name);
    if (value == nullptr) continue;
    if (!value->is_object()) return wrong(cat(at, ".", name), "must be an object");
    if (found != nullptr) return refuse("INVALID_BACKEND", at, "has more than one of host, pvc and ossfs");
    found = &value->get_object();
    kind = name;
  }
  if (found == nullptr) return refuse("INVALID_BACKEND", at, "needs one of host, pvc and ossfs");
  if (kind == "ossfs") return refuse("UNSUPPORTED_BACKEND", cat(at, ".ossfs"), "this runtime cannot mount object storage");
  return kind == "host" ? take_host(*found, cat(at, ".host"), out) : take_claim(*found, cat(at, ".pvc"), out);
}

Result<VolumeSpec> parse_volume(const json::value& value, const std::string& at) {
  if (!value.is_object()) return wrong(at, "must be an object");
  const auto& item = value.get_object();
  VolumeSpec out;
  TRY(auto name, text(item, "name", at));
  if (!name || !is_volume_name(*name, 63))
    return refuse("INVALID_NAME", cat(at, ".name"), "must be 1 to 63 lowercase letters, digits and '-'");
  out.name = *std::move(name);
  CHECK_OK(take_backend(item, at, out));
  TRY(auto mount_path, text(item, "mountPath", at));
  TRY(out.mount_path, check_mount_path(mount_path, cat(at, ".mountPath")));
  TRY(auto sub_path, text(item, "subPath", at));
  TRY(out.sub_path, check_sub_path(sub_path, cat(at, ".subPath")));
  TRY(out.read_only, flag(item, "readOnly", at, false));
  return out;
}

// One inside another would make directories inside somebody's volume for the other's sake.
Result<> check_apart(const std::vector<VolumeSpec>& volumes, const VolumeSpec& next, const std::string& at) {
  for (const auto& other : volumes) {
    if (other.name == next.name) return refuse("DUPLICATE_NAME", cat(at, ".name"), cat("another volume is called ", next.name));
    if (lies_at_or_below(other.mount_path, next.mount_path) || lies_at_or_below(next.mount_path, other.mount_path))
      return refuse("INVALID_MOUNT_PATH", cat(at, ".mountPath"), cat("overlaps with ", other.mount_path, " of volume ", other.name));
  }
  return Ok{};
}

}  // namespace

bool is_volume_name(std::string_view name, std::size_t longest) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (name.empty() || name.size() > longest || !letter(name.front()) || !letter(name.back())) return false;
  for (char c : name)
    if (!letter(c) && c != '-') return false;
  return true;
}

Result<std::uint64_t> parse_volume_size(std::string_view text) {
  auto end = text.find_first_not_of("0123456789.");
  if (auto unit = text.substr(std::min(end, text.size())); !unit.empty() && (unit.size() != 2 || unit[1] != 'i'))
    return Error(Errc::invalid_argument, "must be a size such as 512Mi or 1Gi");
  TRY(auto bytes, parse_bytes(text));
  if (bytes < kMinVolumeBytes || bytes > kMaxVolumeBytes) return Error(Errc::invalid_argument, "must be a size from 16Mi to 1Ti");
  return bytes & ~std::uint64_t{4095};
}

Result<std::vector<VolumeSpec>> parse_volumes(const json::value& list) {
  if (!list.is_array()) return wrong("volumes", "must be a list");
  if (list.get_array().size() > kMaxVolumes) return refuse("INVALID_BACKEND", "volumes", cat("at most ", kMaxVolumes, " can be mounted"));
  std::vector<VolumeSpec> out;
  for (const auto& item : list.get_array()) {
    auto at = cat("volumes[", out.size(), "]");
    TRY(auto volume, parse_volume(item, at));
    CHECK_OK(check_apart(out, volume, at));
    out.push_back(std::move(volume));
  }
  return out;
}

}  // namespace osb
