#include "execd/pty/attachment.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "async/task_group.h"
#include "base/text.h"
#include "execd/json.h"

namespace osb::execd {
namespace {

using http::WsOpcode;

constexpr auto kPingEvery = std::chrono::seconds(30);
constexpr auto kSilence = std::chrono::seconds(60);
constexpr auto kWriteDeadline = std::chrono::seconds(10);
constexpr auto kGoodbye = std::chrono::seconds(2);  // for the client to answer a close
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kChunkBytes = 32 * 1024;
constexpr std::size_t kMaxQueue = 16 * 1024;
constexpr std::size_t kReplayHead = 9;
constexpr char kInput = 0, kOutput = 1, kErrorOutput = 2, kReplay = 3;

std::string text_frame(std::string_view json) { return http::ws_frame(WsOpcode::text, json); }

int signal_number(std::string_view name) {
  constexpr std::pair<std::string_view, int> kSignals[] = {
      {"SIGINT", SIGINT}, {"SIGTERM", SIGTERM}, {"SIGKILL", SIGKILL}, {"SIGQUIT", SIGQUIT}, {"SIGHUP", SIGHUP}};
  for (auto [known, number] : kSignals)
    if (name == known) return number;
  return 0;
}

}  // namespace

std::string error_frame(std::string_view code, std::string_view message) {
  return text_frame(cat(R"({"type":"error","error":)", json_string(message), R"(,"code":")", code, "\"}"));
}

Attachment::Attachment(Executor executor, std::shared_ptr<Terminal> terminal)
    : terminal_(std::move(terminal)), wake_(executor), drained_(executor), heard_(Clock::now()), next_ping_(heard_ + kPingEvery) {}

void Attachment::end_with(std::uint16_t close_code, std::string_view reason) {
  if (close_code_ != 0 && !after_output_) return;
  close_code_ = close_code;
  close_reason_ = reason;
  last_words_.clear();
  after_output_ = false;
  wake();
}

void Attachment::end_with_error(std::string_view code, std::string_view message) {
  if (close_code_ != 0 && !after_output_) return;
  end_with(http::kWsNormal, message);
  last_words_ = error_frame(code, message);
}

void Attachment::end_with_exit(int exit_code) {
  if (close_code_ != 0) return;
  end_with(http::kWsNormal, "process exited");
  last_words_ = text_frame(cat(R"({"type":"exit","exit_code":)", exit_code, "}"));
  after_output_ = true;
}

void Attachment::cut() {
  lost_ = true;
  if (stream_) stream_->close();
  wake();
}

// ---- writing ----------------------------------------------------------------------------------------------

// The replay and the word "connected". The bytes are taken and the live position is set in one step, so that none is missing
// and none comes twice. A replay is at most one message of the size clients take by default.
void Attachment::put_opening(std::uint64_t since) {
  const Ring& ring = terminal_->output();
  constexpr std::uint64_t kMost = http::kWsMessageBytes - kReplayHead;
  std::uint64_t from = std::max({since, ring.begin(), ring.end() > kMost ? ring.end() - kMost : 0});
  if (from < ring.end()) {
    std::string payload(1, kReplay);
    for (int shift = 56; shift >= 0; shift -= 8) payload += static_cast<char>(from >> shift & 0xFF);
    payload += ring.read_from(from);
    frame_ = http::ws_frame(WsOpcode::binary, payload);
  }
  sent_ = ring.end();
  const char* mode = terminal_->has_tty() ? "pty" : "pipe";
  frame_ += text_frame(cat(R"({"type":"connected","session_id":")", terminal_->id(), R"(","mode":")", mode, "\"}"));
}

bool Attachment::put_output() {
  const Ring& ring = terminal_->output();
  auto run = terminal_->run_at(sent_);
  std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(run.end - sent_, kChunkBytes));
  if (size == 0) return false;
  frame_.resize(http::kWsHead + 1 + size);
  std::size_t head = http::put_ws_head(frame_.data(), WsOpcode::binary, size + 1);
  frame_[head] = run.error_output ? kErrorOutput : kOutput;
  ring.copy(sent_, frame_.data() + head + 1, size);
  frame_.resize(head + 1 + size);
  sent_ += size;
  return true;
}

// Into frame_ what is to be said next; false when there is nothing now.
bool Attachment::put_next() {
  frame_.clear();
  if (!queue_.empty()) {
    frame_.swap(queue_);
    drained_.cancel();
    return true;
  }
  if (Clock::now() < next_ping_) return put_output();
  next_ping_ = Clock::now() + kPingEvery;
  frame_ = http::ws_frame(WsOpcode::ping, {});
  return true;
}

// frame_ holds the opening.
Task<void> Attachment::speak() {
  for (bool last = false, more = true;; more = put_next()) {
    bool over = close_code_ != 0 && !(after_output_ && more);
    if (over) frame_ = last_words_ + http::ws_close(close_code_, close_reason_);
    last = over;
    if (!more && !over) {
      wake_.expires_at(next_ping_);
      co_await wake_.async_wait(nothrow);
      if (lost_) co_return;
      continue;
    }
    auto sent = co_await stream_->write_all(frame_);
    lost_ = lost_ || !sent;
    if (lost_ || last) co_return;
    if (frame_.capacity() > 2 * kChunkBytes) std::string().swap(frame_);  // a replay is not needed twice
    if (auto& process = terminal_->process()) process->wake();            // its reader may go on
  }
}

// ---- reading ----------------------------------------------------------------------------------------------

void Attachment::reply(std::string_view text) {
  queue_ += text_frame(text);
  wake();
}

Task<void> Attachment::write_input(std::string_view bytes) {
  auto process = terminal_->process();
  while (process && process->input() && !bytes.empty()) {
    auto n = ::write(process->input()->native_handle(), bytes.data(), bytes.size());
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      auto [ec] = co_await process->input()->async_wait(asio::posix::descriptor_base::wait_write, nothrow);
      if (ec) co_return;
    } else if (errno != EINTR) {
      // One that has ended tells so by itself.
      if (process->running()) end_with_error("STDIN_WRITE_FAILED", "the program does not read its input any more");
      co_return;
    }
  }
}

void Attachment::signal(const boost::json::object& request) {
  auto process = terminal_->process();
  auto name = text_member(request, "signal");
  int number = name ? signal_number(*name) : 0;
  if (!process || number == 0) return;
  process->has_terminal() ? process->signal_terminal(number) : process->signal_group(number);
}

void Attachment::resize(const boost::json::object& request) {
  auto process = terminal_->process();
  auto cols = number_member(request, "cols");
  auto rows = number_member(request, "rows");
  auto fits = [](const auto& side) { return side && *side && **side > 0 && **side <= 0xFFFF; };
  if (!process || !process->has_terminal() || !fits(cols) || !fits(rows)) return;
  process->resize({.cols = static_cast<std::uint16_t>(**cols), .rows = static_cast<std::uint16_t>(**rows)});
}

std::string_view Attachment::obey_text(http::WsMessage& message) {
  auto request = parse_object(message.payload);
  if (!request) return {};
  auto type = text_member(*request, "type");
  std::string_view name = type ? std::string_view(*type) : std::string_view();
  if (name == "stdin") {
    auto data = text_member(*request, "data");
    message.payload = data ? *std::move(data) : std::string();
    return message.payload;
  }
  if (name == "ping")
    reply(R"({"type":"pong"})");
  else if (name == "resize")
    resize(*request);
  else if (name == "signal")
    signal(*request);
  else
    reply(R"({"type":"error","error":"unknown type of frame","code":"INVALID_FRAME"})");
  return {};
}

std::string_view Attachment::obey(http::WsMessage& message) {
  if (close_code_ != 0 && message.opcode != WsOpcode::close) return {};  // after our close only the client's matters
  switch (message.opcode) {
    case WsOpcode::text: return obey_text(message);
    case WsOpcode::binary:
      return std::string_view(message.payload).substr(message.payload.starts_with(kInput) ? 1 : message.payload.size());
    case WsOpcode::close: end_with(http::kWsNormal, {}); break;
    case WsOpcode::ping:
      queue_ += http::ws_frame(WsOpcode::pong, message.payload);
      wake();
      break;
    case WsOpcode::pong:
    case WsOpcode::continuation: break;
  }
  return {};
}

// Until the client has no more to say.
Task<void> Attachment::listen() {
  http::WsDecoder decoder;
  std::string buffer(kReadBytes, '\0');
  for (;;) {
    auto n = co_await stream_->read_some(buffer);
    if (!n && n.error().kind() == Errc::timeout && Clock::now() - heard_ < kSilence) continue;
    if (!n || *n == 0) co_return cut();
    decoder.feed({buffer.data(), *n});
    for (;;) {
      auto message = decoder.next();
      if (!message) co_return end_with(decoder.close_code(), message.error().what());
      if (!*message) break;
      auto input = obey(**message);
      if (!input.empty()) co_await write_input(input);
      if ((*message)->opcode == WsOpcode::close) co_return;
      if (queue_.size() < kMaxQueue) continue;
      drained_.expires_at(Clock::time_point::max());
      co_await drained_.async_wait(nothrow);
    }
    heard_ = Clock::now();  // after obeying: input that waits for the program is no silence of the client
  }
}

Task<void> Attachment::converse(http::Stream& stream, std::uint64_t since) {
  stream_ = &stream;
  stream.set_deadline(kWriteDeadline);
  auto executor = co_await asio::this_coro::executor;
  TaskGroup listening(executor);
  put_opening(since);
  listening.spawn("terminal input", listen());
  co_await speak();
  terminal_->leave(*this);
  if (!lost_) co_await listening.wait_idle(kGoodbye);
  co_await listening.stop();
}

}  // namespace osb::execd
