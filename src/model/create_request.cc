#include "model/create_request.h"

#include <algorithm>

#include "base/text.h"
#include "model/command_policy.h"
#include "model/create_shape.h"
#include "model/json.h"
#include "model/metadata.h"
#include "model/quantity.h"
#include "model/volume_request.h"

namespace osb {
namespace {

#if defined(__aarch64__)
constexpr std::string_view kBuiltArch = "arm64";
#else
constexpr std::string_view kBuiltArch = "amd64";
#endif

constexpr std::string_view kParameter = "SANDBOX::INVALID_PARAMETER";
constexpr std::int64_t kMinRenewSeconds = 300;
constexpr std::int64_t kMaxRenewSeconds = 86400;
constexpr std::size_t kMaxExtensionBytes = 4096;

Error refuse(std::string_view field, std::string_view why) {
  return Error(Errc::invalid_argument, cat(field, ": ", why)).with_code(kParameter).at(field);
}

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }
bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

// ---- extensions: the operator's caps on mode and syscalls are checked by lifecycle -----------------------------

using ApplyExtension = Result<> (*)(const std::string& value, SandboxSpec& spec);

Result<> apply_mode(const std::string& value, SandboxSpec& spec) {
  auto mode = parse_user_mode(value);
  if (!mode) return Error(Errc::invalid_argument, "must be user or root");
  spec.policy.user = *mode;
  return Ok{};
}

Result<> apply_syscalls(const std::string& value, SandboxSpec& spec) {
  auto profile = parse_syscall_profile(value);
  if (!profile) return Error(Errc::invalid_argument, "must be minimal, default or permissive");
  spec.policy.syscalls = *profile;
  return Ok{};
}

Result<> apply_root(const std::string& value, SandboxSpec& spec) {
  if (value != "ro" && value != "rw") return Error(Errc::invalid_argument, "must be ro or rw");
  spec.policy.root = value == "ro" ? RootMode::read_only : RootMode::writable;
  return Ok{};
}

Result<> apply_pids(const std::string& value, SandboxSpec& spec) {
  TRY(spec.limits.pids, parse_pids(value));
  return Ok{};
}

Result<> apply_disk(const std::string& value, SandboxSpec& spec) {
  TRY(spec.limits.disk_bytes, parse_disk(value));
  return Ok{};
}

Result<> check_renew(const std::string& value, SandboxSpec&) {
  auto seconds = parse_int<std::int64_t>(value);
  if (!seconds || *seconds < kMinRenewSeconds || *seconds > kMaxRenewSeconds)
    return Error(Errc::invalid_argument, "must be a whole number of seconds from 300 to 86400");
  return Ok{};
}

// Kept as it was sent; whoever judges commands reads it again.
Result<> check_command_policy(const std::string& value, SandboxSpec&) {
  auto policy = parse_command_policy(std::string_view(value));
  if (!policy) return std::move(policy).error();
  return Ok{};
}

constexpr std::pair<std::string_view, ApplyExtension> kExtensions[] = {
    {"opensandbox.mode", apply_mode},         {"opensandbox.syscalls", apply_syscalls}, {"opensandbox.root", apply_root},
    {"opensandbox.pids", apply_pids},         {"opensandbox.disk", apply_disk},         {"access.renew.extend.seconds", check_renew},
    {kPolicyExtension, check_command_policy},
};

// A misspelt name of ours would silently leave a sandbox wider than its maker wanted.
Result<> refuse_unknown_extension(std::string_view name) {
  if (!name.starts_with("opensandbox.") || name.starts_with("opensandbox.extensions.")) return Ok{};
  std::vector<std::string_view> known;
  for (const auto& [candidate, apply] : kExtensions) known.push_back(candidate);
  auto error = refuse(cat("extensions.", name.substr(0, 80)), "is not an extension this server knows");
  if (auto close = nearest(name, known)) return std::move(error).with_hint(cat("did you mean ", *close, "?"));
  return error;
}

Result<> apply_extensions(StringMap extensions, SandboxSpec& spec) {
  if (extensions.size() > kMaxExtensions) return refuse("extensions", cat("at most ", kMaxExtensions, " are allowed"));
  for (const auto& [name, value] : extensions) {
    auto field = cat("extensions.", std::string_view(name).substr(0, 80));
    auto most = name == kPolicyExtension ? kMaxPolicyBytes : kMaxExtensionBytes;
    if (name.size() > kMaxExtensionBytes || value.size() > most) return refuse(field, "is too long");
    const auto* row = std::find_if(std::begin(kExtensions), std::end(kExtensions), [&](const auto& r) { return r.first == name; });
    if (row == std::end(kExtensions)) {
      CHECK_OK(refuse_unknown_extension(name));
    } else if (auto ok = row->second(value, spec); !ok) {
      return refuse(field, ok.error().what());
    }
  }
  spec.extensions = std::move(extensions);
  return Ok{};
}

// ---- sources ----------------------------------------------------------------------------------------------------

std::optional<std::string> pool_named(const CreateShape& shape) {
  auto pool = shape.extensions.find("poolRef");
  if (pool == shape.extensions.end() || is_blank(pool->second)) return std::nullopt;
  return pool->second;
}

Error no_pools() {
  return Error(Errc::invalid_argument, "extensions.poolRef: this runtime has no pools to take a sandbox from")
      .with_code("SANDBOX::UNSUPPORTED_POOL_REF")
      .at("extensions.poolRef")
      .with_hint("leave poolRef out; a fresh sandbox starts in milliseconds");
}

// What the pool has where the request says nothing.
Result<SandboxSpec> join_pool(CreateShape& shape, SandboxSpec& spec, const std::string& name, const FindPool& find_pool) {
  if (!find_pool) return no_pools();
  TRY(auto pool, find_pool(name));
  spec.limits = pool.limits;
  spec.policy = pool.policy;
  CHECK_OK(apply_extensions(shape.extensions, spec));
  if (!shape.image) shape.image = pool.image;
  if (!shape.entrypoint) shape.entrypoint = pool.entrypoint;
  for (const auto& [key, value] : pool.env) shape.env.emplace(key, value);
  return pool;
}

// Its sandboxes are made before anybody asks: a request can only ask for what they are.
Result<> check_same(const SandboxSpec& spec, const SandboxSpec& pool, const std::string& name) {
  auto differs = [&](std::string_view field, std::string_view asked, std::string_view has) {
    return refuse(field, cat("is ", asked, ", and the sandboxes of pool ", name, " have ", has))
        .with_hint("leave it out, or leave poolRef out");
  };
  if (spec.image != pool.image) return differs("image.uri", spec.image, pool.image);
  if (spec.limits.memory_bytes != pool.limits.memory_bytes)
    return differs("resourceLimits.memory", cat(spec.limits.memory_bytes, " bytes"), cat(pool.limits.memory_bytes));
  if (spec.limits.cpu_millis != pool.limits.cpu_millis)
    return differs("resourceLimits.cpu", cat(spec.limits.cpu_millis, "m"), cat(pool.limits.cpu_millis, "m"));
  if (spec.limits.disk_bytes != pool.limits.disk_bytes)
    return differs("resourceLimits.disk", cat(spec.limits.disk_bytes, " bytes"), cat(pool.limits.disk_bytes));
  if (spec.limits.pids != pool.limits.pids) return differs("resourceLimits.pids", cat(spec.limits.pids), cat(pool.limits.pids));
  if (spec.limits != pool.limits) return refuse("resourceLimits", cat("are not those of pool ", name));
  if (spec.policy.user != pool.policy.user)
    return differs("extensions.opensandbox.mode", name_of(spec.policy.user), name_of(pool.policy.user));
  if (spec.policy.syscalls != pool.policy.syscalls)
    return differs("extensions.opensandbox.syscalls", name_of(spec.policy.syscalls), name_of(pool.policy.syscalls));
  if (spec.policy != pool.policy) return refuse("extensions.opensandbox.root", cat("is not that of pool ", name));
  return Ok{};
}

// Registry references and ids only: no option, no scheme, no path can pass for an image.
Result<std::string> check_image(std::string image) {
  auto ok = [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '/' || c == ':' ||
           c == '@';
  };
  bool starts = !image.empty() && ok(image.front()) && std::string_view("._-/:@").find(image.front()) == std::string_view::npos;
  if (image.size() > kMaxImageBytes) return refuse("image.uri", cat("is longer than ", kMaxImageBytes, " characters"));
  if (!starts || !std::all_of(image.begin(), image.end(), ok) || image.find("//") != std::string::npos ||
      image.find("..") != std::string::npos)
    return refuse("image.uri",
                  cat(json_string(std::string_view(image).substr(0, 80)), " is not an image reference such as host or debian:12"));
  return image;
}

Result<> take_source(CreateShape& shape, SandboxSpec& spec) {
  if (!shape.snapshot_id) {
    TRY(spec.image, check_image(*std::move(shape.image)));
    return Ok{};
  }
  if (!is_id_text(*shape.snapshot_id))
    return Error(Errc::not_found, "snapshotId: there is no such snapshot").with_code("SNAPSHOT::NOT_FOUND").at("snapshotId");
  spec.snapshot_id = *std::move(shape.snapshot_id);
  return Ok{};
}

Result<> check_image_auth(const ImageAuth& auth) {
  if (auth.username.size() > kMaxImageAuthBytes || auth.password.size() > kMaxImageAuthBytes)
    return refuse("image.auth", cat("a name or password of more than ", kMaxImageAuthBytes, " bytes is not one"));
  if (has_nul(auth.username) || has_nul(auth.password) || auth.username.find(':') != std::string::npos)
    return refuse("image.auth", "a name must not contain ':', and neither a NUL character");
  return Ok{};
}

// ---- entrypoint ---------------------------------------------------------------------------------------------------

Error bad_entrypoint(std::string_view why) {
  return Error(Errc::invalid_argument, cat("entrypoint: ", why)).with_code("DOCKER::INVALID_ENTRYPOINT").at("entrypoint");
}

Result<std::vector<std::string>> effective_entrypoint(std::vector<std::string> items) {
  if (items.size() == 1 && items.front().find(' ') != std::string::npos) {
    auto words = split_words(items.front());
    if (!words) return bad_entrypoint(words.error().what());
    items = *std::move(words);
  }
  if (items.empty() || items.front().empty()) return bad_entrypoint("its first item must name a program");
  if (items.size() > kMaxEntrypointItems) return bad_entrypoint(cat("at most ", kMaxEntrypointItems, " items are allowed"));
  std::size_t bytes = 0;
  for (const auto& item : items) {
    if (has_nul(item)) return bad_entrypoint("an item contains a NUL character");
    bytes += item.size() + 1;
  }
  if (bytes > kMaxEntrypointBytes) return bad_entrypoint(cat("at most ", kMaxEntrypointBytes, " bytes are allowed"));
  return items;
}

// ---- the rest -----------------------------------------------------------------------------------------------------

Result<> check_metadata(const StringMap& metadata) {
  if (metadata.size() > kMaxMetadataEntries)
    return Error(Errc::invalid_argument, cat("metadata: at most ", kMaxMetadataEntries, " entries are allowed"))
        .with_code("SANDBOX::INVALID_METADATA_LABEL")
        .at("metadata");
  for (const auto& [key, value] : metadata) {
    CHECK_OK(check_metadata_key(key));
    CHECK_OK(check_metadata_value(key, value));
  }
  return Ok{};
}

Result<> check_platform(const CreateShape& shape, const CreateDefaults& defaults) {
  if (!shape.platform) return Ok{};
  std::string_view arch = defaults.arch.empty() ? kBuiltArch : std::string_view(defaults.arch);
  if (shape.platform->first != "linux") return refuse("platform.os", "this server runs linux sandboxes only");
  if (shape.platform->second != arch) return refuse("platform.arch", cat("this server runs on ", arch));
  return Ok{};
}

Result<> check_timeout(const CreateShape& shape, const CreateDefaults& defaults) {
  auto cap = defaults.max_timeout_seconds;
  if (!shape.timeout && cap) return refuse("timeout", cat("this server needs one, of at most ", *cap, " seconds"));
  if (shape.timeout && cap && *shape.timeout > *cap) return refuse("timeout", cat("this server allows at most ", *cap, " seconds"));
  if (shape.timeout && *shape.timeout > kMaxTimeoutSeconds)
    return refuse("timeout", "is longer than 100 years; leave it out for a sandbox that never expires");
  return Ok{};
}

Result<> check_network(const CreateShape& shape) {
  if (shape.network_allows) return refuse("networkPolicy", "egress control is not available yet; only deny-all");
  if (shape.credential_proxy) return refuse("credentialProxy", "egress control is not available yet; only deny-all");
  return Ok{};
}

Result<> check_env(const StringMap& env) {
  if (env.size() > kMaxEnvEntries) return refuse("env", cat("at most ", kMaxEnvEntries, " variables are allowed"));
  std::size_t bytes = 0;
  for (const auto& [name, value] : env) {
    auto field = cat("env.", std::string_view(name).substr(0, 80));
    if (name.empty()) return refuse("env", "a variable has no name");
    if (name.find('=') != std::string::npos || has_nul(name)) return refuse(field, "a name must not contain '=' or NUL");
    if (has_nul(value)) return refuse(field, "a value must not contain NUL");
    bytes += name.size() + value.size() + 2;
  }
  if (bytes > kMaxEnvBytes) return refuse("env", cat("at most ", kMaxEnvBytes, " bytes are allowed in all"));
  return Ok{};
}

template <class N>
Result<> set_limit(const StringMap& asked, std::string_view name, Result<N> (*parse)(std::string_view), N& out) {
  auto found = asked.find(name);
  if (found == asked.end()) return Ok{};
  auto value = parse(found->second);
  if (!value) return refuse(cat("resourceLimits.", name), value.error().what());
  out = *value;
  return Ok{};
}

Result<> apply_limits(const StringMap& asked, Limits& limits) {
  CHECK_OK(set_limit(asked, "cpu", parse_cpu, limits.cpu_millis));
  CHECK_OK(set_limit(asked, "memory", parse_memory, limits.memory_bytes));
  CHECK_OK(set_limit(asked, "disk", parse_disk, limits.disk_bytes));
  CHECK_OK(set_limit(asked, "pids", parse_pids, limits.pids));
  if (auto gpu = asked.find("gpu"); gpu != asked.end() && gpu->second != "0")
    return refuse("resourceLimits.gpu", "this runtime has no gpu to give");
  return Ok{};
}

Result<SandboxSpec> judge(CreateShape shape, const CreateDefaults& defaults, const FindPool& find_pool) {
  SandboxSpec spec;
  spec.limits = defaults.limits;
  spec.policy = defaults.policy;
  CHECK_OK(apply_extensions(shape.extensions, spec));
  auto pool_name = pool_named(shape);
  std::optional<SandboxSpec> pool;
  if (pool_name) {
    TRY(pool, join_pool(shape, spec, *pool_name, find_pool));
  }
  CHECK_OK(take_source(shape, spec));
  CHECK_OK(check_image_auth(shape.image_auth));
  if (!shape.entrypoint) shape.entrypoint = {"tail", "-f", "/dev/null"};  // only a snapshot comes without one
  TRY(spec.entrypoint, effective_entrypoint(*std::move(shape.entrypoint)));
  CHECK_OK(check_metadata(shape.metadata));
  CHECK_OK(check_platform(shape, defaults));
  CHECK_OK(check_timeout(shape, defaults));
  CHECK_OK(check_network(shape));
  if (!shape.volumes.is_null()) {
    TRY(spec.volumes, parse_volumes(shape.volumes));
  }
  CHECK_OK(check_env(shape.env));
  CHECK_OK(apply_limits(shape.resource_limits, spec.limits));
  if (pool) CHECK_OK(check_same(spec, *pool, *pool_name));
  spec.image_auth = std::move(shape.image_auth);
  spec.metadata = std::move(shape.metadata);
  spec.platform = std::move(shape.platform);
  spec.timeout_seconds = shape.timeout;
  spec.env = std::move(shape.env);
  spec.secure_access = shape.secure_access;
  return spec;
}

}  // namespace

Result<std::string> check_image_reference(std::string image) { return check_image(std::move(image)); }
Result<> check_environment(const StringMap& env) { return check_env(env); }
Result<> check_labels(const StringMap& metadata) { return check_metadata(metadata); }

Result<SandboxSpec> parse_create(std::string_view body, const CreateDefaults& defaults, const FindPool& find_pool) {
  auto object = parse_json_object(body);
  if (!object) return std::move(object).error().with_code(kParameter);
  TRY(auto shape, read_create_shape(*object));
  return judge(std::move(shape), defaults, find_pool);
}

Result<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;  // a word has begun, maybe an empty quoted one
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quote == '\'' && c != '\'') {
      word += c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '\\') {
      if (++i == line.size()) return Error(Errc::invalid_argument, "a backslash at the end quotes nothing");
      // Inside double quotes a backslash is itself unless it stands before one of these.
      if (quote == '"' && std::string_view("\"\\$`\n").find(line[i]) == std::string_view::npos) word += '\\';
      word += line[i];
      open = true;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      open = true;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
      if (open) words.push_back(std::exchange(word, {}));
      open = false;
    } else {
      word += c;
      open = true;
    }
  }
  if (quote != 0) return Error(Errc::invalid_argument, "a quotation mark is not closed");
  if (open) words.push_back(std::move(word));
  return words;
}

}  // namespace osb
