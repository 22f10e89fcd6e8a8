// Attachment: the WebSocket conversation of one client with one terminal.
//
// Two coroutines share it: one reads and obeys, one writes everything that is written, so frames never mix. What the reader
// wants said is queued, and while the queue is full it reads no further.
#pragma once
#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "execd/pty/terminal.h"
#include "http/websocket.h"

namespace osb::execd {

// The text frame that tells a client what went wrong.
std::string error_frame(std::string_view code, std::string_view message);

class Attachment {
 public:
  using Clock = std::chrono::steady_clock;

  Attachment(Executor executor, std::shared_ptr<Terminal> terminal);
  // Leaves the place, if it has it.
  ~Attachment() { terminal_->leave(*this); }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  // Replays from `since`, then carries both directions until either side ends it.
  Task<void> converse(http::Stream& stream, std::uint64_t since);

  // ---- for the terminal
  std::uint64_t sent() const { return sent_; }  // offset of the next byte to send
  void wake() { wake_.cancel(); }
  void end_with(std::uint16_t close_code, std::string_view reason);  // soon; the first call counts
  void end_with_error(std::string_view code, std::string_view message);
  void end_with_exit(int exit_code);  // after all output
  void cut();                         // at once

 private:
  Task<void> speak();
  Task<void> listen();
  Task<void> write_input(std::string_view bytes);
  void put_opening(std::uint64_t since);
  bool put_next();
  bool put_output();
  // The bytes a message has for the program; everything else it asks for is done or queued when this returns.
  std::string_view obey(http::WsMessage& message);
  std::string_view obey_text(http::WsMessage& message);
  void reply(std::string_view text);
  void signal(const boost::json::object& request);
  void resize(const boost::json::object& request);

  std::shared_ptr<Terminal> terminal_;
  http::Stream* stream_ = nullptr;
  Timer wake_;         // of the speaker
  Timer drained_;      // the queue is empty again
  std::string queue_;  // frames the reader wants said
  std::string frame_;  // being written
  std::uint64_t sent_ = 0;
  Clock::time_point heard_;
  Clock::time_point next_ping_;
  std::string last_words_;  // before the close
  std::uint16_t close_code_ = 0;
  std::string close_reason_;
  bool after_output_ = false;  // the close waits until all output is sent
  bool lost_ = false;          // nobody is there to hear a close
};

}  // namespace osb::execd
