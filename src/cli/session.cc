#include "cli/session.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "cli/exit_code.h"

namespace osb::cli {
namespace {

using std::chrono::seconds;

// A second Ctrl-C this soon after the first means "now".
constexpr seconds kImpatience{3};
// A command that lives on after its reader went away (it ignores SIGPIPE) gets this long to end by itself.
constexpr seconds kPipeGrace{2};
constexpr std::size_t kInputAhead = kMaxFramePayload;

}  // namespace

int exit_status_of(const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::Kind::interrupted: return kExitSignalBase + outcome.signal;
    case Outcome::Kind::broken_pipe: return kExitSignalBase + SIGPIPE;
    case Outcome::Kind::overdue: return kExitTimedOut;
    case Outcome::Kind::ended: break;
  }
  const Ending& ending = outcome.ending;
  if (ending.cause == "timed_out") return kExitTimedOut;
  if (ending.signal > 0) return kExitSignalBase + ending.signal;
  if (ending.cause == "not_found") return ending.exit_code != 0 ? ending.exit_code : kExitNotFound;
  return ending.exit_code;
}

Session::Session(int socket, std::string unread, Streams streams, Signals* signals)
    : socket_(socket), streams_(streams), signals_(signals), output_(streams.output), error_output_(streams.error_output) {
  decoder_.feed(unread);
}

Result<Outcome> Session::run() {
  next_tick_ = Clock::now() + period_;
  CHECK_OK(deliver());
  while (!outcome_ || (outcome_->kind == Outcome::Kind::ended && congested())) CHECK_OK(turn());
  return *outcome_;
}

int Session::millis_to_next_event() const {
  if (outcome_) return -1;  // only a reader that takes the rest is waited for
  auto next = Clock::time_point::max();
  if (tick_) next = std::min(next, next_tick_);
  if (give_up_) next = std::min(next, *give_up_);
  if (broken_at_) next = std::min(next, *broken_at_ + kPipeGrace);
  if (next == Clock::time_point::max()) return -1;
  return static_cast<int>(std::clamp<std::int64_t>(std::chrono::ceil<Millis>(next - Clock::now()).count(), 0, 60'000));
}

Result<> Session::turn() {
  // A descriptor nobody wants anything from is left out: poll would report its hang-up again and again.
  short socket_events = static_cast<short>((!congested() && !peer_gone_ ? POLLIN : 0) | (to_peer_.empty() ? 0 : POLLOUT));
  bool wants_input = streams_.input >= 0 && to_peer_.size() < kInputAhead && !outcome_;
  pollfd fds[] = {{socket_events != 0 ? socket_ : -1, socket_events, 0},
                  {wants_input ? streams_.input : -1, POLLIN, 0},
                  {output_.poll_fd(), POLLOUT, 0},
                  {error_output_.poll_fd(), POLLOUT, 0},
                  {signals_ != nullptr ? signals_->fd() : -1, POLLIN, 0}};
  if (::poll(fds, std::size(fds), millis_to_next_event()) < 0 && errno != EINTR) return Error::from_errno("poll", errno);
  if (fds[4].revents != 0) take_signals();
  if (fds[2].revents != 0) output_.flush();
  if (fds[3].revents != 0) error_output_.flush();
  if (fds[1].revents != 0) take_input();
  if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !peer_gone_) CHECK_OK(take_output());
  CHECK_OK(deliver());
  CHECK_OK(send_pending());
  CHECK_OK(check_sinks());
  check_clocks();
  return Ok{};
}

void Session::take_input() {
  char bytes[kMaxFramePayload];
  auto n = ::read(streams_.input, bytes, sizeof bytes);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n > 0) return append_frame(to_peer_, FrameType::input, {bytes, static_cast<std::size_t>(n)});
  // A terminal that went away or a descriptor we were not given reads as the end, as it would for the command itself.
  append_frame(to_peer_, FrameType::input_end, {});
  streams_.input = -1;
}

void Session::send_size() {
  auto size = terminal_->size();
  auto byte = [](unsigned value) { return static_cast<char>(static_cast<unsigned char>(value)); };
  char payload[] = {byte(size.cols >> 8), byte(size.cols), byte(size.rows >> 8), byte(size.rows)};
  append_frame(to_peer_, FrameType::resize, {payload, sizeof payload});
}

// Keys never make signals while the terminal is raw: a signal comes from outside and means us.
bool Session::take_terminal_signal(int number) {
  if (number == SIGTERM || number == SIGHUP) {
    outcome_ = Outcome{Outcome::Kind::interrupted, {}, number};
    return true;
  }
  if (number == SIGTSTP) terminal_->suspend();
  if (number == SIGTSTP || number == SIGWINCH) send_size();
  return number == SIGTSTP || number == SIGWINCH;
}

void Session::take_signals() {
  while (auto number = signals_->take()) {
    auto now = Clock::now();
    if (terminal_ != nullptr && take_terminal_signal(*number)) continue;
    if (*number == SIGINT && interrupted_at_ && now - *interrupted_at_ < kImpatience) {
      outcome_ = Outcome{Outcome::Kind::interrupted, {}};
      return;
    }
    if (*number == SIGINT) interrupted_at_ = now;
    char byte = static_cast<char>(*number);
    append_frame(to_peer_, FrameType::signal, {&byte, 1});
  }
}

Result<> Session::take_output() {
  char bytes[128 * 1024];
  auto n = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return Ok{};
  if (n > 0) {
    decoder_.feed({bytes, static_cast<std::size_t>(n)});
    return Ok{};
  }
  peer_gone_ = true;
  return Ok{};
}

Result<> Session::deliver() {
  while (!outcome_ && !congested()) {
    TRY(auto frame, decoder_.next());
    if (!frame && !peer_gone_) return Ok{};
    if (!frame) return Error(Errc::unavailable, "the sandbox ended before the command did");
    if (frame->type == FrameType::output) output_.push(frame->payload);
    if (frame->type == FrameType::error_output) error_output_.push(frame->payload);
    if (frame->type != FrameType::end) continue;
    TRY(auto ending, parse_ending(frame->payload));
    outcome_ = Outcome{Outcome::Kind::ended, std::move(ending)};
  }
  return Ok{};
}

Result<> Session::send_pending() {
  while (!to_peer_.empty()) {
    auto n = ::send(socket_, to_peer_.data(), to_peer_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return Ok{};
    if (n < 0) {
      // The command may have ended with its input unread; how it ended is still on its way to us.
      to_peer_.clear();
      streams_.input = -1;
      return Ok{};
    }
    to_peer_.erase(0, static_cast<std::size_t>(n));
  }
  return Ok{};
}

Result<> Session::check_sinks() {
  for (int failed : {output_.failed(), error_output_.failed()}) {
    // Closed from the start: what is written there is nobody's. A full disk is: the command cannot learn of it, so we say it.
    if (failed == 0 || failed == EBADF) continue;
    if (failed != EPIPE) return Error::from_errno("write the command's output", failed);
    if (broken_at_) continue;
    // Nobody reads us any more: the command learns it as it would from a pipe of its own.
    broken_at_ = Clock::now();
    char number = SIGPIPE;
    append_frame(to_peer_, FrameType::signal, {&number, 1});
  }
  return Ok{};
}

void Session::check_clocks() {
  auto now = Clock::now();
  if (outcome_) return;
  if (broken_at_ && now - *broken_at_ >= kPipeGrace) outcome_ = Outcome{Outcome::Kind::broken_pipe, {}};
  if (give_up_ && now >= *give_up_) outcome_ = Outcome{Outcome::Kind::overdue, {}};
  if (!tick_ || now < next_tick_) return;
  next_tick_ = now + period_;
  tick_();
}

}  // namespace osb::cli
