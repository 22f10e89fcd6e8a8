#include "api/connect/door.h"
#include "api/connect/envelope.h"
#include "api/connect/streams.h"
#include "base/log.h"
#include "base/text.h"

namespace osb::api::connect {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBlock = 32 * 1024;
// A caller that opens a stream and says nothing holds a place for nobody.
constexpr auto kFirstMessage = 10s;
constexpr auto kNextMessage = 30s;

// Messages from the gRPC program. Input that nobody is going to come for is told from a slow one by time.
class StreamIn final : public rpc::In {
 public:
  StreamIn(http::Stream& stream, Executor executor)
      : stream_(stream),
        ended_(executor, Timer::time_point::max()),
        unpacker_(rpc::kMaxRequestBytes),
        block_(std::make_unique_for_overwrite<char[]>(kBlock)) {
    stream_.set_deadline(kFirstMessage);
  }
  // How long each of the messages behind the first one may take; zero: as long as the call itself.
  void wait_for_more(std::chrono::seconds limit) { more_ = limit; }

  Task<Result<std::optional<std::string>>> next() override {
    for (;;) {
      CO_TRY(auto envelope, unpacker_.next());
      if (envelope && envelope->flags == kEndOfStream) co_return end();
      if (envelope) co_return message(std::move(envelope->bytes));
      auto got = co_await stream_.read_some(std::span(block_.get(), kBlock));
      if (!got && got.error().kind() == Errc::timeout) co_return too_slow();
      if (!got) co_return std::move(got).error();
      if (*got == 0) co_return Error(Errc::unavailable, "the caller has gone").with_code("GENERAL::CANCELLED");
      unpacker_.feed({block_.get(), *got});
    }
  }

  // Returns when the connection ends although nothing more was to be read from it.
  Task<void> gone() {
    while (!over_) co_await ended_.async_wait(nothrow);
    stream_.clear_deadline();
    for (;;) {
      auto got = co_await stream_.read_some(std::span(block_.get(), kBlock));
      if (!got || *got == 0) co_return;
    }
  }

 private:
  Result<std::optional<std::string>> end() {
    over_ = true;
    ended_.cancel();
    return std::optional<std::string>();
  }
  Result<std::optional<std::string>> message(std::string bytes) {
    if (more_ > 0s) {
      stream_.set_deadline(more_);
    } else {
      stream_.clear_deadline();
    }
    return std::optional(std::move(bytes));
  }
  Error too_slow() const { return Error(Errc::timeout, "The next message did not come in time.").with_code("GENERAL::MESSAGE_TIMEOUT"); }

  http::Stream& stream_;
  Timer ended_;
  Unpacker unpacker_;
  std::unique_ptr<char[]> block_;
  std::chrono::seconds more_ = kNextMessage;
  bool over_ = false;
};

class StreamOut final : public rpc::Out {
 public:
  explicit StreamOut(http::Stream& stream) : stream_(stream) {}
  Task<Result<>> send(std::string message) override {
    auto frame = pack(0, message);
    co_return co_await stream_.write_all(frame);
  }

 private:
  http::Stream& stream_;
};

http::Headers upgrade_headers() {
  http::Headers headers;
  headers.add("Connection", "Upgrade");
  headers.add("Upgrade", std::string(kRelayProtocol));
  return headers;
}

Task<Result<>> pass(session::Service& service, Result<Caller> caller, std::string path, http::Stream& stream) {
  if (!caller) co_return std::move(caller).error();
  auto name = std::string_view(path).substr(std::min(path.size(), rpc::service_name().size() + 2));
  const rpc::Method* method = is_rpc_path(path) ? rpc::find_method(name) : nullptr;
  if (!method)
    co_return Error(Errc::unsupported, cat("There is no method ", path.substr(0, 128), ".")).with_code("GENERAL::NO_SUCH_METHOD");
  auto executor = co_await asio::this_coro::executor;
  StreamIn in(stream, executor);
  StreamOut out(stream);
  // Nobody types without a pause; what ends a terminal is its program, its session or its client.
  if (method->both_ways()) in.wait_for_more(0s);
  rpc::Call call{service, *std::move(caller), rpc::Form::binary, in, out};
  co_return co_await rpc::attended(*method, call, in.gone(), method->limit);
}

}  // namespace

Task<void> serve_relay(session::Service& service, Result<Caller> caller, http::Request& request, http::Responder& responder) {
  if (!iequals(request.headers.get("Upgrade"), kRelayProtocol)) {
    Error error(Errc::unsupported, "This socket is for the gRPC program.");
    co_return co_await refuse(error, request, responder, {});
  }
  auto upgraded = co_await responder.upgrade(101, upgrade_headers());
  if (!upgraded) co_return;
  http::Stream& stream = **upgraded;
  auto done = co_await pass(service, std::move(caller), request.path, stream);
  auto status = done ? rpc::Status{} : rpc::to_status(done.error());
  if (status.code == rpc::Code::internal)
    log::error("call failed", {{"request_id", request.request_id}, {"path", request.path}, {"error", done.error().what()}});
  stream.set_deadline(10s);
  auto frame = pack(kTrailers, trailer_lines(status));
  [[maybe_unused]] auto sent = co_await stream.write_all(frame);
}

}  // namespace osb::api::connect
