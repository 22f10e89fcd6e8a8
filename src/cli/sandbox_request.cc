#include "cli/sandbox_request.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "model/metadata.h"
#include "model/quantity.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

template <class T>
Result<std::optional<std::string>> checked(const Args& args, std::string_view name, Result<T> (*parse)(std::string_view)) {
  if (!args.has(name)) return std::optional<std::string>{};
  auto text = args.get(name);
  if (auto value = parse(text); !value) return usage_error(cat("--", name, " ", text, ": ", value.error().what()), value.error().hint());
  return std::optional<std::string>(std::move(text));
}

std::optional<std::string> given(const Args& args, std::string_view name) {
  return args.has(name) ? std::optional<std::string>(args.get(name)) : std::nullopt;
}

json::object object_of(const StringMap& map) {
  json::object out;
  for (const auto& [key, value] : map) out[key] = value;
  return out;
}

// SOURCE:PATH[:ro|:rw]
Result<SandboxRequest::Volume> parse_volume(const std::string& text) {
  auto parts = split(text, ':');
  bool ends = parts.size() == 3 && (parts[2] == "ro" || parts[2] == "rw");
  if ((parts.size() != 2 && !ends) || parts[0].empty() || !parts[1].starts_with('/'))
    return usage_error(cat("--volume ", text, ": must be SOURCE:PATH or SOURCE:PATH:ro"), "for example -v data:/data");
  return SandboxRequest::Volume{std::string(parts[0]), std::string(parts[1]), ends && parts[2] == "ro"};
}

json::array volumes_of(const std::vector<SandboxRequest::Volume>& volumes) {
  json::array out;
  for (const auto& volume : volumes) {
    json::object item{{"name", cat("v", out.size())}, {"mountPath", volume.path}, {"readOnly", volume.read_only}};
    if (volume.source.starts_with('/'))
      item["host"] = json::object{{"path", volume.source}};
    else
      item["pvc"] = json::object{{"claimName", volume.source}};
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace

Result<StringMap> parse_metadata(const std::vector<std::string>& items) {
  StringMap out;
  for (const auto& item : items) {
    auto equals = item.find('=');
    if (equals == std::string::npos) return usage_error(cat("'", item, "' is not k=v"));
    auto key = item.substr(0, equals), value = item.substr(equals + 1);
    if (auto fine = check_metadata_key(key); !fine) return usage_error(fine.error().what(), fine.error().hint());
    if (auto fine = check_metadata_value(key, value); !fine) return usage_error(fine.error().what(), fine.error().hint());
    out[key] = value;
  }
  return out;
}

Result<SandboxRequest> read_sandbox_request(const Args& args) {
  SandboxRequest out;
  out.image = args.get("image", "host");
  TRY(out.memory, checked(args, "memory", &parse_memory));
  TRY(out.cpus, checked(args, "cpus", &parse_cpu));
  TRY(out.pids, checked(args, "pids", &parse_pids));
  TRY(out.disk, checked(args, "disk", &parse_disk));
  out.mode = given(args, "mode");
  out.syscalls = given(args, "syscalls");
  out.writable_root = args.has("rw");
  out.snapshot = given(args, "snapshot");
  if (out.snapshot && args.has("image")) return usage_error("--image and --snapshot exclude each other");
  for (const auto& text : args.all("volume")) {
    TRY(auto volume, parse_volume(text));
    out.volumes.push_back(std::move(volume));
  }
  auto labels = args.all("metadata");
  if (args.has("name")) labels.push_back(cat("name=", args.get("name")));
  TRY(out.metadata, parse_metadata(labels));
  return out;
}

json::object to_json(const SandboxRequest& request) {
  json::object limits, extensions;
  if (request.memory) limits["memory"] = *request.memory;
  if (request.cpus) limits["cpu"] = *request.cpus;
  if (request.pids) limits["pids"] = *request.pids;
  if (request.disk) limits["disk"] = *request.disk;
  if (request.mode) extensions["opensandbox.mode"] = *request.mode;
  if (request.syscalls) extensions["opensandbox.syscalls"] = *request.syscalls;
  if (request.writable_root) extensions["opensandbox.root"] = "rw";
  json::array entrypoint;
  for (const auto& word : request.entrypoint) entrypoint.emplace_back(word);
  json::object out{{"image", json::object{{"uri", request.image}}}, {"entrypoint", entrypoint}, {"resourceLimits", limits}};
  if (request.snapshot) {
    out.erase("image");
    out["snapshotId"] = *request.snapshot;
  }
  if (!request.volumes.empty()) out["volumes"] = volumes_of(request.volumes);
  if (!request.env.empty()) out["env"] = object_of(request.env);
  if (!request.metadata.empty()) out["metadata"] = object_of(request.metadata);
  if (!extensions.empty()) out["extensions"] = extensions;
  if (request.lifetime) out["timeout"] = request.lifetime->count();
  return out;
}

}  // namespace osb::cli
