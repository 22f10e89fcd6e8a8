// SandboxSpec: what was asked for, parsed and validated once. Sandbox: what exists. Both are plain values.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/id.h"
#include "model/limits.h"
#include "model/policy.h"
#include "model/states.h"
#include "model/volume.h"

namespace osb {

using StringMap = std::map<std::string, std::string, std::less<>>;

// For the registry the image comes from. In memory only, and only until the pull has it: never stored, logged or shown.
struct ImageAuth {
  std::string username;
  std::string password;
};

struct SandboxSpec {
  std::string image;              // reference as given: "host", "debian:12", "sha256:..."; "" = made from a snapshot
  std::string snapshot_id;        // "" = made from an image
  std::string image_digest = {};  // what it stood for when the sandbox was made; set by lifecycle
  ImageAuth image_auth = {};
  std::vector<std::string> entrypoint;  // effective list (a single string with spaces is already split)
  StringMap env;
  StringMap metadata;
  StringMap extensions;
  Limits limits;
  Policy policy;
  std::optional<std::int64_t> timeout_seconds;                  // nullopt = never expires
  std::optional<std::pair<std::string, std::string>> platform;  // os, arch: echoed only when requested
  bool secure_access = false;
  std::vector<VolumeSpec> volumes;
  std::vector<std::string> layers;  // what the image or snapshot was when the sandbox was made, topmost first
};

// The pool a sandbox was asked from; "" = none.
inline std::string pool_of(const SandboxSpec& spec) {
  auto found = spec.extensions.find("poolRef");
  bool named = found != spec.extensions.end() && found->second.find_first_not_of(" \t\r\n\v\f") != std::string::npos;
  return named ? found->second : std::string();
}

struct Status {
  State state = State::pending;
  std::string reason;   // CONTAINER_RUNNING, CONTAINER_PAUSED, OOMKilled, ...
  std::string message;  // for people
  WallTime changed_at;
};

struct Sandbox {
  SandboxId id;
  std::string owner;  // name of the API key that created it
  SandboxSpec spec;
  Status status;
  WallTime created_at;
  std::optional<WallTime> expires_at;
  // What expires_at means on the machine's own clock: CLOCK_BOOTTIME on the boot named here. Wall-clock jumps do not
  // move it; on another boot it is computed again from expires_at. 0 = never expires.
  std::uint64_t deadline_boot_nanos = 0;
  std::string boot_id = {};
};

}  // namespace osb
