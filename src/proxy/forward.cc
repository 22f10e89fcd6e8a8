#include "proxy/forward.h"

#include <chrono>
#include <memory>

#include "async/task_group.h"
#include "base/text.h"
#include "proxy/headers.h"

namespace osb::proxy {
namespace {

constexpr std::size_t kBlock = 64 * 1024;
constexpr std::size_t kLargeBlock = 256 * 1024;  // of an answer that is known to be long: fewer calls for each byte
// Silence is normal in a terminal or a long command; only a connection whose peer vanished is older than this.
constexpr auto kTunnelIdle = std::chrono::hours(24);
constexpr auto kLastWords = std::chrono::seconds(10);  // for a client to read the end and hang up

Task<void> close_later(http::Stream& client) {
  co_await sleep_for(kLastWords);
  client.close();
}

// The backend's side of an upgraded connection: shows what is read to the watch, and sees to it that a client which does
// not hang up after the backend did is hung up on.
class BackendStream : public http::Stream {
 public:
  BackendStream(http::Stream& inner, http::Stream& client, TaskGroup& after, Watch* watch)
      : inner_(inner), client_(client), after_(after), watch_(watch) {}
  Task<Result<std::size_t>> read_some(std::span<char> into) override {
    auto read = co_await inner_.read_some(into);
    if (read && *read == 0) after_.spawn("close client", close_later(client_));
    if (read && watch_) watch_->feed({into.data(), *read});
    co_return read;
  }
  Task<Result<>> write_all(std::string_view bytes) override { return inner_.write_all(bytes); }
  void set_deadline(std::chrono::steady_clock::duration from_now) override { inner_.set_deadline(from_now); }
  void clear_deadline() override { inner_.clear_deadline(); }
  void shutdown_write() noexcept override { inner_.shutdown_write(); }
  void close() noexcept override { inner_.close(); }

 private:
  http::Stream& inner_;
  http::Stream& client_;
  TaskGroup& after_;
  Watch* watch_;
};

Task<Result<int>> relay_upgrade(http::ClientConnection& backend, http::ClientConnection::Head head, http::Responder& client, Watch* watch) {
  auto headers = response_headers(head.headers);
  headers.add("Upgrade", std::string(head.headers.get("Upgrade")));
  auto stream = co_await client.upgrade(101, std::move(headers));
  if (!stream) co_return 101;
  co_await asio::this_coro::throw_if_cancelled(false);  // whoever cancels us waits until what we started has ended
  auto executor = co_await asio::this_coro::executor;
  TaskGroup after(executor);
  BackendStream inside(backend.stream(), **stream, after, watch);
  co_await http::tunnel(**stream, inside, kTunnelIdle);
  co_await after.stop();
  co_return 101;
}

Task<Result<int>> relay_stream(http::ClientConnection& backend, int status, http::Headers headers, http::Responder& client,
                               ForwardOptions options) {
  // A length the backend promised is promised on, so that the client can tell a cut answer from a whole one.
  auto length = backend.body().content_length();
  if (length) headers.add("Content-Length", cat(*length));
  std::size_t room = length.value_or(0) > kLargeBlock ? kLargeBlock : kBlock;
  auto block = std::make_unique_for_overwrite<char[]>(room);
  std::span<char> into(block.get(), room);
  auto& body = backend.body();
  std::string_view first;
  if (options.head_with_first) {
    auto read = co_await body.read_some(into);
    if (!read) co_return std::move(read).error();
    first = {block.get(), *read};
    if (options.watch) options.watch->feed(first);
  }
  auto begun = co_await client.begin(status, std::move(headers), first);
  while (begun && !body.done()) {
    auto read = co_await body.read_some(into);
    if (!read) co_return status;
    if (*read == 0) break;
    std::string_view bytes(block.get(), *read);
    if (options.watch) options.watch->feed(bytes);
    begun = co_await client.chunk(bytes);
  }
  if (begun) [[maybe_unused]]
    auto ended = co_await client.end();
  co_return status;
}

// To HEAD, or "not modified": the length is that of the body which is not sent.
Task<Result<int>> relay_head(http::ClientConnection::Head head, http::Headers headers, http::Responder& client) {
  auto length = head.headers.get("Content-Length");
  if (!length.empty()) headers.add("Content-Length", std::string(length));
  http::Response bare{head.status, std::move(headers), {}};
  [[maybe_unused]] auto sent = co_await client.send(std::move(bare));
  co_return head.status;
}

// A short answer whose length is known leaves in one write.
Task<Result<int>> relay_whole(http::ClientConnection& backend, int status, http::Headers headers, http::Responder& client, Watch* watch) {
  http::Response whole{status, std::move(headers), {}};
  CO_TRY(whole.body, co_await backend.body().read_all(kBlock));
  if (watch) watch->feed(whole.body);
  [[maybe_unused]] auto sent = co_await client.send(std::move(whole));
  co_return status;
}

}  // namespace

Task<Result<>> answer(http::Responder& client, http::Response response) {
  [[maybe_unused]] auto sent = co_await client.send(std::move(response));
  co_return Ok{};
}

namespace {

Task<Result<int>> exchange(http::ClientConnection& backend, http::ClientRequest outgoing, http::Responder& client, ForwardOptions options) {
  CO_TRY(auto head, co_await backend.start(std::move(outgoing)));
  if (head.status == 101) {
    if (!options.upgrade) co_return Error(Errc::unavailable, "the backend switched protocols without being asked");
    co_return co_await relay_upgrade(backend, std::move(head), client, options.watch);
  }
  auto headers = response_headers(head.headers);
  if (options.head_request || head.status == 304) co_return co_await relay_head(std::move(head), std::move(headers), client);
  auto length = backend.body().content_length();
  if (length && *length <= kBlock) co_return co_await relay_whole(backend, head.status, std::move(headers), client, options.watch);
  co_return co_await relay_stream(backend, head.status, std::move(headers), client, options);
}

Task<void> close_when_gone(http::Responder& client, http::ClientConnection& backend) {
  co_await client.closed();
  backend.close();  // wakes whoever waits for the backend
}

}  // namespace

Task<Result<int>> forward(http::ClientConnection& backend, http::ClientRequest outgoing, http::Responder& client, ForwardOptions options) {
  if (!options.watch_client) co_return co_await exchange(backend, std::move(outgoing), client, options);
  co_await asio::this_coro::throw_if_cancelled(false);  // whoever cancels us waits until what we started has ended
  auto executor = co_await asio::this_coro::executor;
  TaskGroup lookout(executor);
  lookout.spawn("watch client", close_when_gone(client, backend));
  auto status = co_await exchange(backend, std::move(outgoing), client, options);
  co_await lookout.stop();
  co_return status;
}

}  // namespace osb::proxy
