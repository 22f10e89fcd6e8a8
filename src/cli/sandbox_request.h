// The options of run and create that describe a sandbox, and the request they make.
#pragma once
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/spec.h"
#include "cli/units.h"
#include "model/sandbox.h"

namespace osb::cli {

inline constexpr OptionSpec kImageOption{"--image", "IMAGE",
                                         "what is in it: host (this machine's /usr, read-only) or an image; pulled when missing"};
inline constexpr OptionSpec kSnapshotOption{"--snapshot", "ID", "begin with the files of this snapshot instead of an image"};
inline constexpr OptionSpec kVolumeOption{"-v,--volume", "SOURCE:PATH[:ro]", "mount a named volume or, with /..., a shared host path",
                                          true};
inline constexpr OptionSpec kMemoryOption{"-m,--memory", "SIZE", "memory it may use: 512Mi, 2Gi"};
inline constexpr OptionSpec kCpusOption{"--cpus", "N", "processor time: 0.5, 2, 500m"};
inline constexpr OptionSpec kPidsOption{"--pids", "N", "processes and threads at one time"};
inline constexpr OptionSpec kDiskOption{"--disk", "SIZE", "bytes it may write: 256Mi"};
inline constexpr OptionSpec kModeOption{"--mode", "MODE", "user (uid 1000, no capability) or root (uid 0 inside only)", false, "user|root"};
inline constexpr OptionSpec kSyscallsOption{"--syscalls", "SET", "system calls it may make", false, "minimal|default|permissive"};
inline constexpr OptionSpec kWritableOption{"--rw", "", "a writable root (thrown away with the sandbox)"};
inline constexpr OptionSpec kNameOption{"--name", "NAME", "a name to find it by (metadata name=NAME)"};
inline constexpr OptionSpec kMetadataOption{"--metadata", "K=V", "a label; may be given several times", true};

struct SandboxRequest {
  std::string image = "host";
  std::optional<std::string> memory, cpus, pids, disk;  // checked, sent as written
  std::optional<std::string> mode, syscalls;            // absent = as the daemon is configured
  bool writable_root = false;
  std::optional<std::string> snapshot;
  struct Volume {
    std::string source, path;  // a source that begins with / is of the host
    bool read_only = false;
  };
  std::vector<Volume> volumes;
  StringMap metadata;
  StringMap env;
  std::vector<std::string> entrypoint{"tail", "-f", "/dev/null"};
  std::optional<std::chrono::seconds> lifetime;  // nullopt = until somebody kills it
};

// Everything but env, entrypoint and lifetime. What the daemon would refuse is a usage error here already.
Result<SandboxRequest> read_sandbox_request(const Args& args);
boost::json::object to_json(const SandboxRequest& request);
// "k=v" pairs.
Result<StringMap> parse_metadata(const std::vector<std::string>& items);

}  // namespace osb::cli
