#include "daemon/wiring.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "api/sessions/routes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/config_pools.h"
#include "daemon/secrets.h"
#include "daemon/version.h"
#include "runtime/host_room.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"
#include "sys/peer_owner.h"

namespace osb::daemon {
namespace {

constexpr std::string_view kSessionsFile = "sessions.address";  // where the session API is, for whoever may look here
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
  if (!private_instance)
    options.host_room = [reader = std::make_shared<runtime::HostRoomReader>(config.storage.state_dir)] { return reader->read(); };
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
  options.spares.crowd = std::max<std::size_t>(1, runtime::usable_processors() / 2);
  options.spares.max_memory_bytes = config.pool.max_memory;
  options.pools = configured_pools(config, create_defaults(config));
  return options;
}

proxy::GateSettings gate_settings(const CommandPolicyConfig& config) {
  return {config.policy, config.ask_timeout_seconds, config.self_approval};
}

session::Options session_options(const Config& config) {
  session::Options options;
  options.rules.runtime = config.runtime;
  options.rules.limits = config.default_limits();
  options.rules.policy = config.default_policy();
  options.rules.timeout_seconds = config.resources.timeout_seconds;
  options.rules.max_timeout_seconds = config.server.max_sandbox_timeout_seconds;
  options.rules.allow_permissive = config.security.allow_permissive;
  options.idle_seconds = static_cast<std::int64_t>(config.sessions.idle_seconds);
  return options;
}

api::sessions::DoorRules door_rules(const Config& config) {
  api::sessions::DoorRules rules;
  rules.loopback = config.sessions.listen == "::1" || config.sessions.listen.starts_with("127.");
  rules.require_key = config.sessions.require_key;
  rules.users_without_key = {0, ::geteuid()};
  for (const auto& user : config.sessions.users_without_key)
    if (auto uid = uid_of(user)) rules.users_without_key.insert(*uid);
  rules.allowed_origins = config.sessions.allowed_origins;
  return rules;
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
  if (auto opened = open_doors(); !opened) co_return opened;
  auto sessions = co_await open_session_door();
  if (!sessions) co_return sessions;
  co_return open_grpc_door();
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
  lifecycle_->spares().watch({.ready = [this](const SandboxId& id) { proxy_->spare_ready(id); },
                              .taken = [this](const SandboxId& id) { proxy_->spare_taken(id); }});
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

// The service is there for every door of a daemon; its own listener only where the operator wants it.
Task<Result<>> App::open_session_door() {
  if (private_) co_return Ok{};
  sessions_ = std::make_unique<session::LiveService>(io_, *lifecycle_, *proxy_, session_options(config_));
  co_await sessions_->start();
  const auto& wanted = config_.sessions;
  if (!wanted.enabled) co_return Ok{};
  CO_TRY(auto keys, load_keys(config_));
  api::sessions::Context context{*sessions_, &proxy_->gate().approvals(), std::string(kVersion), config_.runtime};
  session_door_ = std::make_unique<api::sessions::SessionDoor>(std::move(context), std::move(keys), door_rules(config_),
                                                               config_.limits.max_requests_per_key);
  session_server_ = std::make_unique<http::Server>(io_, http::Limits{}, session_door_->handler());
  session_server_->set_find_peer(sys::peer_owner);
  auto port = session_server_->listen_tcp(wanted.listen, wanted.port);
  if (!port)
    co_return std::move(port)
        .error()
        .in("sessions.port")
        .with_hint("Choose another sessions.port (0 = a free one), or set sessions.enabled: false.");
  sessions_address_ = authority_of(wanted.listen, *port);
  CO_TRY(auto folder, sys::fs::open_directory(instance_->run_dir()));
  auto text = cat("http://", sessions_address_, api::sessions::kMount, "\n");
  co_return sys::fs::replace_file(folder.get(), std::string(kSessionsFile), text, 0644, sys::fs::Durable::no);
}

// The program is asked for by name or not at all: without it nothing of gRPC is loaded, listened on or started.
Result<> App::open_grpc_door() {
  if (private_ || !config_.grpc.enabled) return Ok{};
  TRY(auto program, find_program("opensandbox-grpc"));
  TRY(auto keys, load_keys(config_));
  relay_door_ = std::make_unique<api::connect::RelayDoor>(*sessions_, std::move(keys), config_.limits.max_requests_per_key);
  http::Limits limits;
  limits.connections = config_.grpc.max_calls + std::size_t{64};
  relay_server_ = std::make_unique<http::Server>(io_, limits, relay_door_->handler());
  CHECK_OK(relay_server_->listen_unix(instance_->grpc_socket(), 0600));
  grpc_program_ = std::make_unique<GrpcProgram>(io_, config_.grpc, std::move(program), instance_->grpc_socket());
  auto port = grpc_program_->start();
  if (!port)
    return std::move(port).error().in("grpc.port").with_hint("Choose another grpc.port (0 = a free one), or set grpc.enabled: false.");
  grpc_address_ = authority_of(config_.grpc.listen, *port);
  return Ok{};
}

void App::on_ended(const runtime::Ended& ended) {
  if (!lifecycle_) return early_.push_back(ended);
  lifecycle_->on_ended(ended);
  if (proxy_) proxy_->forget(ended.id);
  if (sessions_) sessions_->on_ended(ended.id);
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
  if (session_door_) {
    session_door_->set_keys(keys);
    session_door_->set_rules(door_rules(config));
    session_door_->set_max_requests_per_key(config.limits.max_requests_per_key);
  }
  if (relay_door_) {
    relay_door_->set_keys(keys);
    relay_door_->set_max_requests_per_key(config.limits.max_requests_per_key);
  }
  if (sessions_) sessions_->set_options(session_options(config));
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
  if (!sessions_address_.empty()) out += cat(",\"sessions\":", json_string(cat("http://", sessions_address_, api::sessions::kMount)));
  bool no_grpc = grpc_program_ && grpc_program_->has_given_up();
  if (no_grpc) out += ",\"grpcError\":\"opensandbox-grpc cannot run on this host; the log of serve tells why\"";
  if (!grpc_address_.empty() && !no_grpc) out += cat(",\"grpc\":", json_string(grpc_address_));
  if (!config_.file.empty()) out += cat(",\"configFile\":", json_string(config_.file));
  if (!private_ && !config_.auth.insecure_no_auth && config_.auth.api_key.empty())
    out += cat(",\"keyFile\":", json_string(config_.api_key_file()));
  return out + cat(",\"stateDir\":", json_string(config_.storage.state_dir), ",\"sandboxes\":", lifecycle_ ? lifecycle_->live() : 0, "}");
}

Task<void> App::stop() {
  auto grace = private_ ? std::chrono::steady_clock::duration(kPrivateGrace) : kRequestGrace;
  if (proxy_) proxy_->gate().stop();  // who waits for an answer is told now, not after the grace
  if (grpc_program_) co_await grpc_program_->stop();
  if (relay_server_) co_await relay_server_->stop(grace);
  if (session_server_) co_await session_server_->stop(grace);
  if (tcp_) co_await tcp_->stop(grace);
  if (local_) co_await local_->stop(grace);
  if (sessions_) co_await sessions_->stop();
  if (proxy_) co_await proxy_->stop();
  if (!sessions_address_.empty()) ::unlink(cat(instance_->run_dir(), "/", kSessionsFile).c_str());
  if (private_ && lifecycle_) co_await destroy_all();
  if (lifecycle_) co_await lifecycle_->stop();
  if (runtime_.stop) co_await runtime_.stop();
  grpc_program_.reset();
  relay_server_.reset();
  relay_door_.reset();
  session_server_.reset();
  session_door_.reset();
  sessions_.reset();
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
