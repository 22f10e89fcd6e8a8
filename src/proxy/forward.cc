#include "proxy/forward.h"

#include <chrono>
#include <memory>

#include "proxy/headers.h"

namespace osb::proxy {
namespace {

constexpr std::size_t kBlock = 64 * 1024;
// Silence is normal in a terminal or a long command; only a connection whose peer vanished is older than this.
constexpr auto kTunnelIdle = std::chrono::hours(24);

// Shows every byte that is read to a watch.
class WatchedStream : public http::Stream {
 public:
  WatchedStream(http::Stream& inner, Watch& watch) : inner_(inner), watch_(watch) {}
  Task<Result<std::size_t>> read_some(std::span<char> into) override {
    auto read = co_await inner_.read_some(into);
    if (read) watch_.feed({into.data(), *read});
    co_return read;
  }
  Task<Result<>> write_all(std::string_view bytes) override { return inner_.write_all(bytes); }
  void set_deadline(std::chrono::steady_clock::duration from_now) override { inner_.set_deadline(from_now); }
  void clear_deadline() override { inner_.clear_deadline(); }
  void shutdown_write() noexcept override { inner_.shutdown_write(); }
  void close() noexcept override { inner_.close(); }

 private:
  http::Stream& inner_;
  Watch& watch_;
};

Task<Result<int>> relay_upgrade(http::ClientConnection& backend, http::ClientConnection::Head head, http::Responder& client, Watch* watch) {
  auto headers = response_headers(head.headers);
  headers.add("Connection", "Upgrade");
  headers.add("Upgrade", std::string(head.headers.get("Upgrade")));
  auto stream = co_await client.upgrade(101, std::move(headers));
  if (!stream) co_return 101;
  if (watch) {
    WatchedStream watched(backend.stream(), *watch);
    co_await http::tunnel(**stream, watched, kTunnelIdle);
  } else {
    co_await http::tunnel(**stream, backend.stream(), kTunnelIdle);
  }
  co_return 101;
}

Task<Result<int>> relay_stream(http::ClientConnection& backend, int status, http::Headers headers, http::Responder& client,
                               ForwardOptions options) {
  auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  std::span<char> into(block.get(), kBlock);
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

Task<Result<int>> forward(http::ClientConnection& backend, http::ClientRequest outgoing, http::Responder& client, ForwardOptions options) {
  CO_TRY(auto head, co_await backend.start(std::move(outgoing)));
  if (head.status == 101) {
    if (!options.upgrade) co_return Error(Errc::unavailable, "the backend switched protocols without being asked");
    co_return co_await relay_upgrade(backend, std::move(head), client, options.watch);
  }
  auto headers = response_headers(head.headers);
  auto length = backend.body().content_length();
  bool short_body = length && *length <= kBlock;
  if (short_body) co_return co_await relay_whole(backend, head.status, std::move(headers), client, options.watch);
  co_return co_await relay_stream(backend, head.status, std::move(headers), client, options);
}

}  // namespace osb::proxy
