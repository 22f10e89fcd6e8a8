#include "runtime/native/plan.h"

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace osb::runtime {
namespace {

void append_pairs(std::string& out, const StringMap& map) {
  out += '{';
  bool first = true;
  for (const auto& [name, value] : map) {
    if (!std::exchange(first, false)) out += ',';
    append_json_string(out, name);
    out += ':';
    append_json_string(out, value);
  }
  out += '}';
}

// First programs that only keep a sandbox alive; execd does that by itself and starts nothing for them.
bool only_holds(const std::vector<std::string>& entrypoint) {
  using Words = std::vector<std::string>;
  return entrypoint.empty() || entrypoint == Words{"tail", "-f", "/dev/null"} || entrypoint == Words{"sleep", "infinity"};
}

}  // namespace

wire::Key key_of(const SandboxId& id) {
  wire::Key key;
  id.text().copy(key.text, sizeof key.text);
  return key;
}

Result<wire::CreateRequest> plan_create(const SandboxId& id, const SandboxSpec& spec, const image::Image& image,
                                        std::uint64_t deadline_boot_nanos) {
  if (image.layers.empty() || image.layers.size() > wire::kMaxLayers)
    return Error(Errc::invalid_argument,
                 cat("image ", image.name, " has ", image.layers.size(), " layers; 1 to ", wire::kMaxLayers, " can be stacked"));
  wire::CreateRequest request;
  request.id = key_of(id);
  request.deadline_boot_nanos = deadline_boot_nanos;
  request.limits = spec.limits;
  request.policy = spec.policy;
  request.host_view = image.host_view ? 1 : 0;
  request.snapshot_layers = static_cast<std::uint8_t>(image.snapshot_layers);
  request.answer_at_exec = only_holds(spec.entrypoint) ? 1 : 0;
  for (const auto& layer : image.layers) layer.copy(request.layers[request.layer_count++].hex, sizeof(wire::Digest));
  return request;
}

wire::ClaimRequest plan_claim(const SandboxId& id, const SandboxSpec& spec, std::uint64_t deadline_boot_nanos) {
  wire::ClaimRequest request;
  request.id = key_of(id);
  request.deadline_boot_nanos = deadline_boot_nanos;
  request.answer_at_once = only_holds(spec.entrypoint) ? 1 : 0;
  return request;
}

std::string plan_setup(const SandboxSpec& spec, const image::Image& image, bool one_user) {
  bool root = spec.policy.user == UserMode::root;
  StringMap env;
  for (const auto& [name, value] : image.env) env.insert_or_assign(name, value);
  for (const auto& [name, value] : spec.env) env.insert_or_assign(name, value);
  std::string out = "{\"env\":";
  append_pairs(out, env);
  out += ",\"entrypoint\":[";
  for (std::size_t i = 0; i < spec.entrypoint.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, spec.entrypoint[i]);
  }
  out += "],\"cwd\":";
  append_json_string(out, image.working_dir.empty() ? "/workspace" : image.working_dir);
  int payload = root ? 0 : 1000;
  out += cat(",\"uid\":", payload, ",\"gid\":", payload, ",\"home\":", root ? "\"/root\"" : "\"/home/user\"", ",\"keep_caps\":", root,
             ",\"one_user\":", one_user, ",\"audit_exec\":true}");
  return out;
}

Error describe_failure(wire::Step step, int sys, std::string_view detail) {
  std::string why = sys != 0 ? std::strerror(sys) : std::string(detail);
  if (step == wire::Step::entrypoint && (sys == ENOENT || sys == EACCES || sys == ENOEXEC || sys == ENOTDIR))
    return Error(Errc::invalid_argument, "the entrypoint cannot be started: " + why, sys)
        .with_code("DOCKER::INVALID_ENTRYPOINT")
        .at("entrypoint");
  if (step == wire::Step::volume_mounts)
    return Error(Errc::invalid_argument, cat("a volume cannot be mounted where the request says: ", why), sys)
        .with_code("VOLUME::INVALID_MOUNT_PATH")
        .at("volumes")
        .with_hint("choose a mountPath below /mnt, /workspace or /tmp that goes through no symbolic link");
  if (step == wire::Step::volume_sources && sys == EINVAL)
    return Error(Errc::invalid_argument, "the file system of a volume cannot show its files with other owners (idmapped mounts)", sys)
        .with_code("VOLUME::UNSUPPORTED_BACKEND")
        .at("volumes");
  if (step == wire::Step::volume_sources && (sys == ELOOP || sys == ENOTDIR || sys == EEXIST))
    return Error(Errc::invalid_argument, cat("a volume cannot be mounted where the request says: ", why), sys)
        .with_code("VOLUME::INVALID_MOUNT_PATH")
        .at("volumes")
        .with_hint("choose a mountPath and subPath that go through no symbolic link and no file");
  bool exhausted = sys == EAGAIN || sys == ENOSPC || sys == EMFILE || sys == ENFILE || sys == ENOMEM;
  return Error(exhausted ? Errc::exhausted : Errc::internal, cat("step ", wire::name_of(step), " failed: ", why), sys)
      .with_code("DOCKER::SANDBOX_START_FAILED");
}

}  // namespace osb::runtime
