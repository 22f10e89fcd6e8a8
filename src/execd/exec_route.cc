#include "execd/exec_route.h"

#include <errno.h>
#include <unistd.h>

#include "base/text.h"
#include "execd/collector.h"
#include "execd/frames.h"
#include "execd/replies.h"
#include "execd/run_request.h"

namespace osb::execd {
namespace {

constexpr std::string_view kProtocol = "osb-exec/1";
constexpr std::size_t kReadBytes = 32 * 1024;
constexpr std::size_t kBatchBytes = 64 * 1024;  // of frames in one write
// The words of a program that is over by then leave together with its end, in one write.
constexpr auto kShortProgram = std::chrono::milliseconds(2);
// What the kernel may still hold of a terminal whose program has ended; it cannot be asked how much that is.
constexpr std::size_t kTerminalRest = 64 * 1024;
constexpr std::string_view kEndOfInput = "\x04";  // what a terminal takes for it
// How often a client that cannot take part (its input is stuck) is asked whether it is still there.
constexpr auto kProbeEvery = std::chrono::seconds(3);

// What the two directions of one conversation know of each other.
struct Conversation {
  std::shared_ptr<Process> process;
  http::Stream& stream;
  bool gone = false;         // the client hung up or broke the protocol
  bool input_stuck = false;  // bytes for stdin wait for the program to read
};

// Until the program has room for more. Meanwhile the other direction asks now and then whether the client is there.
Task<void> wait_for_room(Conversation& talk) {
  talk.input_stuck = true;
  talk.process->wake();
  auto [ec] = co_await talk.process->input()->async_wait(asio::posix::descriptor_base::wait_write, nothrow);
  talk.input_stuck = false;
  if (ec) talk.process->input().reset();
}

Task<void> write_input(Conversation& talk, std::string_view bytes) {
  auto& input = talk.process->input();
  while (input && !bytes.empty()) {
    auto n = ::write(input->native_handle(), bytes.data(), bytes.size());
    if (n > 0)
      bytes.remove_prefix(static_cast<std::size_t>(n));
    else if (errno == EAGAIN)
      co_await wait_for_room(talk);
    else if (errno != EINTR)
      input.reset();  // a program that closed its stdin simply does not want more
  }
}

Task<void> obey(Conversation& talk, Frame frame) {
  if (frame.type == FrameType::input) co_await write_input(talk, frame.payload);
  Process& process = *talk.process;
  bool terminal = process.has_terminal();
  if (frame.type == FrameType::input_end && terminal) co_await write_input(talk, kEndOfInput);
  if (frame.type == FrameType::input_end && !terminal) process.input().reset();
  if (frame.type == FrameType::resize) process.resize(frame.size());
  if (frame.type != FrameType::signal) co_return;
  int signal = static_cast<unsigned char>(frame.payload[0]);
  terminal ? process.signal_terminal(signal) : process.signal_group(signal);
}

// Until the client hangs up; then everything the program started ends with it.
Task<void> listen(Conversation& talk) {
  FrameDecoder decoder;
  std::string buffer(kReadBytes, '\0');
  for (;;) {
    auto n = co_await talk.stream.read_some(buffer);
    if (!n || *n == 0) break;
    decoder.feed({buffer.data(), *n});
    auto frame = decoder.next();
    while (frame && *frame) {
      co_await obey(talk, **frame);
      frame = decoder.next();
    }
    if (!frame) break;
  }
  talk.gone = true;
  if (talk.process->running()) talk.process->kill_all();
  talk.process->wake();
}

// Puts what one pipe has into a frame; false when it has nothing (or nothing that counts) now.
bool append_output(std::string& frames, OutputPipe& pipe, FrameType type, std::size_t& left) {
  std::size_t n = pipe.read(scratch().first(std::min(left, kReadBytes)));
  if (n == 0) return false;
  left -= n;
  char head[kFrameHead];
  put_frame_head(head, type, n);
  frames.append(head, kFrameHead).append(scratch().data(), n);
  return true;
}

Task<void> send(Conversation& talk, std::string& frames) {
  if (frames.empty()) co_return;
  auto sent = co_await talk.stream.write_all(frames);
  if (!sent) talk.gone = true;
  frames.clear();
}

Task<void> wait_for_output(Conversation& talk) {
  auto until = talk.input_stuck ? Process::Clock::now() + kProbeEvery : Process::Clock::time_point::max();
  co_await talk.process->activity(until);
  if (!talk.input_stuck || Process::Clock::now() < until) co_return;
  std::string probe = make_frame(FrameType::output, {});
  auto sent = co_await talk.stream.write_all(probe);
  if (!sent) talk.gone = true;
}

// Until the leader has ended and what it wrote is sent, or the client is gone. What a short program wrote leaves together
// with its end.
Task<void> speak(Conversation& talk) {
  Process& process = *talk.process;
  std::string frames;
  std::size_t left[2] = {~std::size_t{0}, ~std::size_t{0}};
  bool closing = false;
  bool short_one = co_await process.wait_end(kShortProgram);
  if (short_one && !process.has_terminal()) process.expect_output();
  while (!talk.gone) {
    bool out = append_output(frames, process.out(), FrameType::output, left[0]);
    bool err = append_output(frames, process.err(), FrameType::error_output, left[1]);
    if (frames.size() >= kBatchBytes) co_await send(talk, frames);
    if (out || err) continue;
    if (closing) break;
    if (process.running()) {
      co_await send(talk, frames);
      if (process.running() && !talk.gone) co_await wait_for_output(talk);
      continue;
    }
    closing = true;
    left[0] = process.has_terminal() ? kTerminalRest : process.out().available();
    left[1] = process.err().available();
    if (left[0] > 0) process.out().expect_bytes();
    if (left[1] > 0) process.err().expect_bytes();
  }
  if (talk.gone) co_return;
  frames += make_frame(FrameType::end, ending_json(*process.end()));
  co_await send(talk, frames);
}

http::Headers upgrade_headers() {
  http::Headers headers;
  headers.add("Upgrade", std::string(kProtocol));
  return headers;
}

Task<void> converse(Sandbox& sandbox, std::shared_ptr<Process> process, http::Responder& responder) {
  auto headers = upgrade_headers();
  auto stream = co_await responder.upgrade(101, std::move(headers));
  if (!stream) {
    process->kill_all();
  } else {
    (*stream)->clear_deadline();
    auto executor = co_await asio::this_coro::executor;
    Conversation talk{.process = process, .stream = **stream};
    TaskGroup listening(executor);
    listening.spawn("exec input", listen(talk));
    co_await speak(talk);
    if (talk.gone && process->running()) process->kill_all();
    co_await listening.stop();
  }
  process->input().reset();
  if (process->has_terminal()) co_return process->close_terminal();
  if (process->out().is_open() || process->err().is_open()) drain_in_background(sandbox, std::move(process));
}

// The program cannot be executed: told the same way as one that ran and said so.
Task<void> end_without_program(http::Responder& responder, Error error) {
  bool absent = error.kind() == Errc::not_found;
  ExitStatus status{.cause = absent ? Cause::not_found : Cause::exited, .code = absent ? 127 : 126};
  auto headers = upgrade_headers();
  auto stream = co_await responder.upgrade(101, std::move(headers));
  if (!stream) co_return;
  std::string frames = make_frame(FrameType::error_output, error.what() + "\n") + make_frame(FrameType::end, ending_json(status));
  [[maybe_unused]] auto sent = co_await (*stream)->write_all(frames);
}

Task<void> refuse(http::Responder& responder, Error error) {
  if (error.kind() == Errc::unsupported) co_return co_await reply_error(responder, 501, "NOT_SUPPORTED", error.what());
  if (error.kind() == Errc::exhausted || error.kind() == Errc::internal)
    co_return co_await reply_error(responder, error.kind() == Errc::exhausted ? 429 : 500, "RUNTIME_ERROR", error.what());
  co_await reply_bad_request(responder, std::move(error));
}

}  // namespace

Task<void> run_exec(Sandbox& sandbox, http::Request& request, http::Responder& responder) {
  if (!iequals(request.headers.get("Upgrade"), kProtocol))
    co_return co_await reply_error(responder, 426, "INVALID_REQUEST_BODY", cat("this route needs \"Upgrade: ", kProtocol, "\""));
  auto body = co_await request.body->read_all(kMaxBody);
  if (!body) co_return co_await reply_bad_request(responder, std::move(body).error());
  auto asked = parse_exec_request(*body);
  if (!asked) co_return co_await reply_bad_request(responder, std::move(asked).error());
  auto start = prepare(sandbox.setup, *std::move(asked));
  if (!start) co_return co_await reply_bad_request(responder, std::move(start).error());
  if (sandbox.processes.running() >= Commands::kMaxRunning)
    co_return co_await reply_error(responder, 429, "RUNTIME_ERROR", "256 commands are running; wait for one to end or interrupt it");
  auto process = sandbox.processes.start(*start);
  if (process) co_return co_await converse(sandbox, *std::move(process), responder);
  if (process.error().field() == "program") co_return co_await end_without_program(responder, std::move(process).error());
  co_await refuse(responder, std::move(process).error());
}

}  // namespace osb::execd
