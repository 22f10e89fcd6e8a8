#include "base/text.h"
#include "image/json_text.h"
#include "image/layer_writer.h"
#include "image/plan.h"
#include "image/sha256.h"

namespace osb::image {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxEnv = 1000;
constexpr std::size_t kMaxEnvBytes = 64 * 1024;  // one entry
constexpr std::size_t kMaxEnvTotal = 1024 * 1024;

Error refused(std::string what) { return Error(Errc::invalid_argument, std::move(what)); }

Result<std::vector<std::pair<std::string, std::string>>> parse_env(const json::object& config) {
  std::vector<std::pair<std::string, std::string>> env;
  std::size_t total = 0;
  for (const std::string& entry : texts_at(config, "Env")) {
    total += entry.size();
    if (env.size() == kMaxEnv || entry.size() > kMaxEnvBytes || total > kMaxEnvTotal)
      return Error(Errc::too_large, "the image's environment has more than 1000 entries, 64 KiB in one or 1 MiB in all");
    if (entry.find('\0') != entry.npos) return refused("the image's environment has a zero byte");
    std::size_t equals = entry.find('=');
    if (equals == entry.npos || equals == 0) continue;  // no name, no variable
    env.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return env;
}

// Only where it is a plain absolute path; where it is not, the sandbox has its own.
std::string parse_working_dir(const json::object& config) {
  std::string dir = text_at(config, "WorkingDir");
  bool fine = dir.starts_with("/") && dir.find('\0') == dir.npos && clean_path(dir);
  return fine ? dir : std::string();
}

Result<std::vector<std::string>> parse_diff_ids(const json::object& root) {
  const json::object* rootfs = object_at(root, "rootfs");
  if (rootfs == nullptr) return refused("the image configuration has no \"rootfs\"");
  std::vector<std::string> ids;
  for (const std::string& id : texts_at(*rootfs, "diff_ids")) {
    if (!id.starts_with("sha256:") || !is_sha256_hex(std::string_view(id).substr(7)))
      return refused("the image configuration has a layer that is no sha256 digest");
    ids.push_back(id.substr(7));
  }
  if (ids.empty()) return refused("the image has no layers");
  return ids;
}

}  // namespace

std::string host_architecture() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#else
#error "name this architecture as OCI images do"
#endif
}

Result<ImageConfig> parse_config(std::string_view text) {
  TRY(auto value, parse_json(text, "image configuration"));
  const json::object* root = value.if_object();
  if (root == nullptr) return refused("the image configuration is not an object");
  ImageConfig config;
  TRY(config.diff_ids, parse_diff_ids(*root));
  config.os = text_at(*root, "os");
  config.architecture = text_at(*root, "architecture");
  if (const json::object* run = object_at(*root, "config")) {
    TRY(config.env, parse_env(*run));
    config.working_dir = parse_working_dir(*run);
  }
  bool fits = (config.os.empty() || config.os == "linux") && (config.architecture.empty() || config.architecture == host_architecture());
  if (!fits)
    return Error(Errc::unsupported, cat("the image is for ", json_string(config.os.substr(0, 40)), "/",
                                        json_string(config.architecture.substr(0, 40)), "; this host runs linux/", host_architecture()));
  return config;
}

}  // namespace osb::image
