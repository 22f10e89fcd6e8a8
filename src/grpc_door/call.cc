#include "grpc_door/call.h"

#include <boost/asio/post.hpp>

namespace osb::grpc_door {
namespace {

std::string text_of(const grpc::string_ref& text) { return {text.data(), text.size()}; }

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string out;
  if (!buffer.Dump(&slices).ok()) return out;
  for (const auto& slice : slices) out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return out;
}

}  // namespace

Call::Call(asio::io_context& io, grpc::GenericCallbackServerContext& context)
    : io_(io),
      context_(context),
      path_(context.method()),
      read_event_(io.get_executor(), Timer::time_point::max()),
      write_event_(io.get_executor(), Timer::time_point::max()),
      cancel_event_(io.get_executor(), Timer::time_point::max()) {
  for (const auto& [name, value] : context.client_metadata()) metadata_.emplace_back(text_of(name), text_of(value));
}

template <class Step>
void Call::post(Step step) {
  asio::post(io_, [this, step] { step(*this); });
}

Task<std::optional<std::string>> Call::read() {
  if (finished_ || cancelled_) co_return std::nullopt;
  reading_ = true;
  StartRead(&in_);
  while (reading_) {
    co_await read_event_.async_wait(nothrow);
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) co_return std::nullopt;
  }
  if (!read_ok_) co_return std::nullopt;
  auto bytes = bytes_of(in_);
  in_.Clear();
  co_return bytes;
}

Task<Result<>> Call::write(std::string message, std::chrono::steady_clock::duration stall) {
  if (finished_ || cancelled_) co_return Error(Errc::unavailable, "the call is over");
  grpc::Slice slice(message);
  out_ = grpc::ByteBuffer(&slice, 1);
  writing_ = true;
  StartWrite(&out_);
  auto until = std::chrono::steady_clock::now() + stall;
  write_event_.expires_at(until);
  while (writing_) {
    co_await write_event_.async_wait(nothrow);
    if (writing_ && std::chrono::steady_clock::now() >= until) co_return Error(Errc::timeout, "the client takes nothing");
    if (writing_ && cancelled_) co_return Error(Errc::unavailable, "the call is over");
  }
  if (!write_ok_) co_return Error(Errc::unavailable, "the client is gone");
  co_return Ok{};
}

void Call::add_trailer(const std::string& name, const std::string& value) {
  if (!finished_) context_.AddTrailingMetadata(name, value);
}

void Call::finish(int code, const std::string& message, const std::string& details) {
  if (std::exchange(finished_, true)) return;
  // A message the client does not take would keep the call for ever.
  if (writing_) context_.TryCancel();
  Finish(grpc::Status(static_cast<grpc::StatusCode>(code), message, details));
}

Task<void> Call::cancelled() {
  while (!cancelled_) {
    co_await cancel_event_.async_wait(nothrow);
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) co_return;
  }
}

void Call::OnReadDone(bool ok) {
  post([ok](Call& call) {
    call.reading_ = false;
    call.read_ok_ = ok;
    call.read_event_.cancel();
  });
}

void Call::OnWriteDone(bool ok) {
  post([ok](Call& call) {
    call.writing_ = false;
    call.write_ok_ = ok;
    call.write_event_.cancel();
  });
}

void Call::OnCancel() {
  post([](Call& call) {
    call.cancelled_ = true;
    call.cancel_event_.cancel();
    call.write_event_.cancel();
  });
}

// The last callback: nothing of the library touches the object after it.
void Call::OnDone() {
  post([](Call& call) { auto last = std::move(call.self_); });
}

}  // namespace osb::grpc_door
