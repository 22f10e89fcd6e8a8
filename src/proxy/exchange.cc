#include "proxy/exchange.h"

#include "base/log.h"
#include "proxy/proxy.h"

namespace osb::proxy {
namespace {

constexpr auto kConnectDeadline = std::chrono::seconds(5);

bool is_idempotent(std::string_view method) { return method == "GET" || method == "HEAD"; }

}  // namespace

Exchange::~Exchange() {
  if (record_) record_->finish(head_.status);
  if (upload_) upload_->finish(head_.status);
  if (connection_ && head_.status != 0 && head_.status != 101 && connection_->reusable()) proxy_.keep_idle(id_, std::move(connection_));
}

Task<Result<std::size_t>> Exchange::read_some(std::span<char> into) {
  auto waiting = head_.status == 101 ? connection_->stream().read_some(into) : connection_->body().read_some(into);
  auto read = co_await std::move(waiting);
  if (read && record_ && record_->watch()) record_->watch()->feed({into.data(), *read});
  co_return read;
}

Task<Result<std::string>> Exchange::read_all(std::size_t limit) { return connection_->body().read_all(limit); }

Task<Result<>> Exchange::write_all(std::string_view bytes) { return connection_->stream().write_all(bytes); }

void Exchange::close() noexcept {
  if (connection_) connection_->close();
}

Task<Result<http::ClientConnection::Head>> Proxy::start_exchange(const SandboxId& id, http::ClientRequest outgoing,
                                                                 std::unique_ptr<http::ClientConnection>& connection) {
  connection = idle_.take(id);
  if (connection) {
    // A kept connection may have died unnoticed; only what can be repeated without harm is tried again.
    bool may_repeat = !outgoing.body_source && is_idempotent(outgoing.method);
    http::ClientRequest again;
    if (may_repeat) again = outgoing;
    auto head = co_await connection->start(std::move(outgoing));
    if (head || !may_repeat) co_return head;
    outgoing = std::move(again);
  }
  CO_TRY(connection, co_await http::connect(lifecycle_.runtime().execd(id), kConnectDeadline));
  co_return co_await connection->start(std::move(outgoing));
}

Task<Result<std::unique_ptr<Exchange>>> Proxy::ask_execd(SandboxId id, http::ClientRequest request, Caller caller, Asking asking) {
  auto exchange = std::make_unique<Exchange>(*this, id);
  auto path = std::string_view(request.target).substr(0, request.target.find('?'));
  if (auto kind = commands_.find(request.method, path)) {
    CO_TRY(exchange->record_, co_await admit_command(id, *kind, request.target, request.body, caller, std::move(asking)));
  }
  if (request.body_source && UploadRecord::is_upload(request.method, path)) {
    exchange->upload_.emplace(audit_, std::move(caller), id, *request.body_source, request.headers.get("Content-Type"));
    if (auto begun = exchange->upload_->start(); !begun)
      co_return std::move(begun).error().in("record upload").with_code("GENERAL::AUDIT_UNAVAILABLE");
    request.body_source = &*exchange->upload_;
  }
  CO_TRY(exchange->head_, co_await start_exchange(id, std::move(request), exchange->connection_));
  co_return exchange;
}

}  // namespace osb::proxy
