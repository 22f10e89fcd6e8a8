#include "daemon/wiring.h"

#include <unistd.h>

#include <chrono>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/config_pools.h"
#include "daemon/secrets.h"
#include "daemon/version.h"
#include "runtime/host_room.h"

namespace osb::daemon {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr auto kRequestGrace = std::chrono::seconds(5);
constexpr auto kPrivateGrace = std::chrono::milliseconds(200);
constexpr auto kDestroyDeadline = std::chrono::seconds(15);

lifecycle::AdmissionLimits admission_limits(const LimitsConfig& config) {
  lifecycle::AdmissionLimits limits;
  limits.sandboxes_per_key = config.max_sandboxes_per_key;
  limits.creates = config.max_creates_in_flight;
  limits.waiting_per_key = config.max_waiting_per_key;
  limits.waiting = config.max_waiting;
  limits.longest_wait = std::chrono::seconds(config.max_wait_seconds);
  limits.memory_reserve_percent = config.memory_reserve_percent;
  limits.memory_overcommit_percent = config.memory_overcommit_percent;
  limits.pids_reserve = config.pids_reserve;
  limits.disk_reserve_bytes = config.disk_reserve_mb << 20;
  return limits;
}

CreateDefaults create_defaults(const Config& config) {
  CreateDefaults defaults;
  defaults.limits = config.default_limits();
  defaults.policy = config.default_policy();
  defaults.max_timeout_seconds = config.server.max_sandbox_timeout_seconds;
  return defaults;
}

lifecycle::Options lifecycle_options(const Config& config, bool private_instance) {
  lifecycle::Options options;
  options.max_sandboxes = config.sessions.max_concurrent;
  options.admission = admission_limits(config.limits);
  // Whoever runs a command on the own machine decides alone what the machine is used for.
  if (!private_instance) options.host_room = [state = config.storage.state_dir] { return runtime::read_host_room(state); };
  options.max_timeout_seconds = config.server.max_sandbox_timeout_seconds;
  options.allow_root_mode = config.security.allow_root_mode;
  options.allow_permissive_syscalls = config.security.allow_permissive;
  options.image_aliases = config.images.aliases;
  options.volumes.allowed_host_paths = config.storage.allowed_host_paths;
  options.volumes.default_bytes = config.storage.volume_default_mb << 20;
  options.pull_missing = config.images.pull_missing;
  options.max_image_bytes = config.images.max_bytes;
  options.spares.automatic = config.pool.automatic && !private_instance;  // which makes one sandbox, as a rule
  options.spares.most = config.pool.max_spares;
  options.spares.max_memory_bytes = config.pool.max_memory;
  options.pools = configured_pools(config, create_defaults(config));
  return options;
}

proxy::GateSettings gate_settings(const CommandPolicyConfig& config) {
  return {config.policy, config.ask_timeout_seconds, config.self_approval};
}

std::string authority_of(const std::string& host, std::uint16_t port) {
  bool v6 = host.find(':') != std::string::npos;
  return v6 ? cat("[", host, "]:", port) : cat(host, ":", port);
}

}  // namespace

App::App(asio::io_context& io, Config config, bool private_instance, RuntimeFactory factory)
    : io_(io), config_(std::move(config)), private_(private_instance), factory_(std::move(factory)), ended_(io.get_executor()) {}

Task<Result<>> App::start() {
  started_nanos_ = boot_now_nanos();
  auto started = co_await start_rooms();
  if (!started) co_await stop();
  co_return started;
}

Task<Result<>> App::start_rooms() {
  if (auto opened = open_files(); !opened) co_return opened;
  auto running = co_await start_runtime_room();
  if (!running) co_return running;
  co_return open_doors();
}

Result<> App::open_files() {
  TRY(instance_, Instance::open(config_, private_));
  const auto& state = instance_->state_dir();
  TRY(store_, store::Store::open(state + "/opensandbox.db"));
  TRY(audit_, audit::Log::open(config_.audit_directory()));
  TRY(images_, image::Store::open(instance_->data_dir() + "/images"));
  TRY(auto registries, load_registries(config_));
  images_->set_registries(std::move(registries));
  return Ok{};
}

Task<Result<>> App::start_runtime_room() {
  RuntimeSetting setting{io_, config_, *instance_, *images_, [this](const runtime::Ended& ended) { on_ended(ended); }, private_};
  CO_TRY(runtime_, co_await factory_(std::move(setting)));
  lifecycle_ =
      std::make_unique<lifecycle::Service>(io_, *store_, *audit_, *images_, *runtime_.runtime, lifecycle_options(config_, private_));
  for (const auto& ended : std::exchange(early_, {})) lifecycle_->on_ended(ended);
  co_return co_await lifecycle_->start();
}

Result<> App::open_doors() {
  TRY(auto secret, read_or_make_secret(instance_->state_dir() + "/secret", kSecretBytes));
  api::Keys keys;
  if (!private_) {
    TRY(keys, load_keys(config_));
  }
  proxy_ = std::make_unique<proxy::Proxy>(io_, *lifecycle_, *audit_, proxy::Tokens(std::move(secret)));
  proxy_->gate().set_settings(gate_settings(config_.command_policy));
  api::Options options{create_defaults(config_), config_.server.public_host, "localhost", std::string(kVersion)};
  options.pull_for_all = config_.images.pull_missing;
  options.max_requests_per_key = config_.limits.max_requests_per_key;
  api_ = std::make_unique<api::Api>(io_, *lifecycle_, *proxy_, *images_, std::move(keys), std::move(options));
  api_->set_daemon_hooks({[this] { return status_json(); },
                          [this] {
                            if (reload_) return reload_();
                            return Result<std::string>(Error(Errc::unsupported, "this daemon does not read its configuration again"));
                          }});
  local_ = std::make_unique<http::Server>(io_, http::Limits{}, api_->handler(api::Door::local));
  CHECK_OK(local_->listen_unix(instance_->api_socket(), 0600));
  if (private_) return Ok{};
  tcp_ = std::make_unique<http::Server>(io_, http::Limits{}, api_->handler(api::Door::tcp));
  TRY(auto port, tcp_->listen_tcp(config_.server.listen, config_.server.port));
  address_ = authority_of(config_.server.listen, port);
  api_->set_tcp_authority(address_);
  return Ok{};
}

void App::on_ended(const runtime::Ended& ended) {
  if (!lifecycle_) return early_.push_back(ended);
  lifecycle_->on_ended(ended);
  if (proxy_) proxy_->forget(ended.id);
  ended_.cancel();
}

Result<> App::apply(const Config& config) {
  if (!api_) return Error(Errc::unavailable, "the daemon is not ready yet");
  api::Keys keys;
  if (!private_) {
    TRY(keys, load_keys(config));
  }
  TRY(auto registries, load_registries(config));
  images_->set_registries(std::move(registries));
  api_->set_keys(std::move(keys));
  api_->set_pull_for_all(config.images.pull_missing);
  api_->set_max_requests_per_key(config.limits.max_requests_per_key);
  api_->set_defaults(create_defaults(config));
  lifecycle_->set_options(lifecycle_options(config, private_));
  proxy_->gate().set_settings(gate_settings(config.command_policy));
  log::set_level(config.log.level);
  return Ok{};
}

std::string App::status_json() const {
  std::string out = cat("{\"pid\":", ::getpid(), ",\"uptimeSeconds\":", (boot_now_nanos() - started_nanos_) / 1'000'000'000,
                        ",\"version\":", json_string(kVersion), ",\"runtime\":", json_string(config_.runtime),
                        ",\"instance\":", json_string(config_.server.instance), ",\"socket\":", json_string(cat("unix://", socket())));
  if (!address_.empty()) out += cat(",\"address\":", json_string(cat("http://", address_)));
  if (!config_.file.empty()) out += cat(",\"configFile\":", json_string(config_.file));
  if (!private_ && !config_.auth.insecure_no_auth && config_.auth.api_key.empty())
    out += cat(",\"keyFile\":", json_string(config_.api_key_file()));
  return out + cat(",\"stateDir\":", json_string(config_.storage.state_dir), ",\"sandboxes\":", lifecycle_ ? lifecycle_->live() : 0, "}");
}

Task<void> App::stop() {
  auto grace = private_ ? std::chrono::steady_clock::duration(kPrivateGrace) : kRequestGrace;
  if (proxy_) proxy_->gate().stop();  // who waits for an answer is told now, not after the grace
  if (tcp_) co_await tcp_->stop(grace);
  if (local_) co_await local_->stop(grace);
  if (proxy_) co_await proxy_->stop();
  if (private_ && lifecycle_) co_await destroy_all();
  if (lifecycle_) co_await lifecycle_->stop();
  if (runtime_.stop) co_await runtime_.stop();
  tcp_.reset();
  local_.reset();
  api_.reset();
  proxy_.reset();
  lifecycle_.reset();
  runtime_ = {};
  if (!private_ || !instance_) co_return;
  store_.reset();
  audit_.reset();
  images_.reset();
  if (auto removed = instance_->remove(); !removed) log::error("private instance left files", {{"error", removed.error().what()}});
}

// Waits until the runtime has told the end of every sandbox: only then is nothing of them left on the host.
Task<void> App::destroy_all() {
  Caller caller{"shutdown", true, ""};
  for (const Sandbox& sandbox : lifecycle_->list({}, 1, 1'000'000, caller).items) {
    auto done = co_await lifecycle_->destroy(sandbox.id, caller);
    if (!done) log::warn("sandbox not destroyed", {{"sandbox", sandbox.id.text()}, {"error", done.error().what()}});
  }
  auto deadline = std::chrono::steady_clock::now() + kDestroyDeadline;
  while (lifecycle_->live() > 0 && std::chrono::steady_clock::now() < deadline) {
    ended_.expires_at(deadline);
    co_await ended_.async_wait(nothrow);
  }
}

}  // namespace osb::daemon
