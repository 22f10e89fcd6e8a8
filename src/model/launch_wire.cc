#include "model/launch_wire.h"

namespace osb::wire {

const char* name_of(Step step) {
  switch (step) {
    case Step::none: return "none";
    case Step::validate: return "validate";
    case Step::ledger: return "ledger";
    case Step::id_range: return "id_range";
    case Step::user_namespace: return "user_namespace";
    case Step::network_namespace: return "network_namespace";
    case Step::cgroup: return "cgroup";
    case Step::cgroup_limits: return "cgroup_limits";
    case Step::disk: return "disk";
    case Step::listener: return "listener";
    case Step::clone: return "clone";
    case Step::cgroup_attach: return "cgroup_attach";
    case Step::cgroup_namespace: return "cgroup_namespace";
    case Step::join_network: return "join_network";
    case Step::hostname: return "hostname";
    case Step::keyring: return "keyring";
    case Step::writable_layer: return "writable_layer";
    case Step::image_layers: return "image_layers";
    case Step::root_overlay: return "root_overlay";
    case Step::host_view: return "host_view";
    case Step::root_switch: return "root_switch";
    case Step::proc: return "proc";
    case Step::proc_masks: return "proc_masks";
    case Step::sys: return "sys";
    case Step::dev: return "dev";
    case Step::etc: return "etc";
    case Step::scratch: return "scratch";
    case Step::rlimits: return "rlimits";
    case Step::landlock_rules: return "landlock_rules";
    case Step::join_user: return "join_user";
    case Step::capabilities: return "capabilities";
    case Step::no_new_privs: return "no_new_privs";
    case Step::landlock: return "landlock";
    case Step::descriptors: return "descriptors";
    case Step::seccomp: return "seccomp";
    case Step::exec: return "exec";
    case Step::entrypoint: return "entrypoint";
    case Step::restored_places: return "restored_places";
    case Step::volume_helpers: return "volume_helpers";
    case Step::held_root: return "held_root";
    case Step::volume_sources: return "volume_sources";
    case Step::volume_mounts: return "volume_mounts";
    case Step::count_: break;
  }
  return "?";
}

std::optional<Step> step_named(std::string_view name) {
  for (std::uint32_t i = 1; i < static_cast<std::uint32_t>(Step::count_); ++i)
    if (name == name_of(static_cast<Step>(i))) return static_cast<Step>(i);
  return std::nullopt;
}

}  // namespace osb::wire
