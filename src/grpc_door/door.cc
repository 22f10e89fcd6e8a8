#include "grpc_door/door.h"

#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <boost/asio/post.hpp>

#include "async/task_group.h"
#include "base/log.h"
#include "grpc_door/call.h"
#include "grpc_door/front.h"
#include "grpc_door/reflection.h"
#include "grpc_door/relay.h"

namespace osb::grpc_door {
namespace {

using namespace std::chrono_literals;

constexpr int kMaxMessage = 4 << 20;
constexpr int kMaxMetadata = 16 * 1024;
constexpr std::size_t kMemory = 192u << 20;  // of the library's buffers
constexpr int kThreads = 4;
constexpr int kSecond = 1000;
constexpr int kReflectionMessages = 1000;  // of one call

void limit(grpc::ServerBuilder& builder, const Options& options) {
  grpc::ResourceQuota quota("opensandbox-grpc");
  quota.Resize(kMemory).SetMaxThreads(kThreads);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMaxMessage);
  // Compressed messages are refused: what they grow to is known only when the memory is spent.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  const std::pair<const char*, int> kArguments[] = {
      {GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams},
      {GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadata},
      {GRPC_ARG_KEEPALIVE_TIME_MS, 60 * kSecond},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * kSecond},
      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0},
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10 * kSecond},
      {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 2},
      {GRPC_ARG_MAX_CONNECTION_IDLE_MS, 300 * kSecond},
      {GRPC_ARG_MAX_CONNECTION_AGE_MS, 3600 * kSecond},
      {GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 86'400 * kSecond},
      {GRPC_ARG_ENABLE_CENSUS, 0},
  };
  for (const auto& [name, value] : kArguments) builder.AddChannelArgument(name, value);
}

}  // namespace

struct Door::Impl final : grpc::CallbackGenericService {
  Impl(asio::io_context& context, Options chosen) : io(context), options(std::move(chosen)), calls(io.get_executor()) {}

  // On a thread of the library.
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    auto call = std::make_shared<Call>(io, *context);
    call->hold(call);
    asio::post(io, [this, call] { begin(call); });
    return call.get();
  }

  void begin(const std::shared_ptr<Call>& call) {
    if (calls.size() >= options.max_calls) return call->finish(grpc::StatusCode::RESOURCE_EXHAUSTED, "Too many calls are under way.", {});
    if (Reflection::is_path(call->path())) return calls.spawn("reflection", reflect(call));
    calls.spawn("call", relay(call, options.relay));
  }

  Task<void> reflect(std::shared_ptr<Call> call) {
    co_await asio::this_coro::throw_if_cancelled(false);
    for (int i = 0; i < kReflectionMessages; ++i) {
      auto asked = co_await call->read();
      if (!asked) co_return call->finish(grpc::StatusCode::OK, {}, {});
      auto answer = reflection->answer(*asked);
      if (!answer) co_return call->finish(grpc::StatusCode::INVALID_ARGUMENT, "This is no request for reflection.", {});
      auto sent = co_await call->write(*std::move(answer), 60s);
      if (!sent) co_return call->finish(grpc::StatusCode::CANCELLED, {}, {});
    }
    call->finish(grpc::StatusCode::RESOURCE_EXHAUSTED, "Too many questions in one call.", {});
  }

  asio::io_context& io;
  Options options;
  std::optional<Reflection> reflection;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Front> front;
  TaskGroup calls;
};

Door::Door(asio::io_context& io, Options options) : impl_(std::make_unique<Impl>(io, std::move(options))) {}
Door::~Door() = default;

Result<> Door::start() {
  TRY(auto reflection, Reflection::load());
  impl_->reflection.emplace(std::move(reflection));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  limit(builder, impl_->options);
  builder.RegisterCallbackGenericService(impl_.get());
  impl_->server = builder.BuildAndStart();
  if (!impl_->server) return Error(Errc::internal, "the gRPC library does not start");
  if (auto* health = impl_->server->GetHealthCheckService()) health->SetServingStatus("opensandbox.session.v1.SessionService", true);
  FrontLimits limits;
  limits.connections = impl_->options.max_connections;
  impl_->front = std::make_unique<Front>(impl_->io, std::move(impl_->options.listener), limits,
                                         [this](Fd fd) { grpc::AddInsecureChannelFromFd(impl_->server.get(), fd.release()); });
  impl_->front->start();
  return Ok{};
}

}  // namespace osb::grpc_door
