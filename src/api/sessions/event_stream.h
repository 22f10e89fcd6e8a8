// EventStream: the events of a command as server-sent events, each written when it happens. A client that reads slowly slows
// the command down; one that is gone ends the delivery.
#pragma once
#include <chrono>

#include "api/sessions/call.h"
#include "session/service.h"

namespace osb::api::sessions {

class EventStream final : public session::EventSink {
 public:
  EventStream(http::Responder& responder, http::Headers extra) : responder_(responder), extra_(std::move(extra)) {}

  Task<Result<>> take(session::ExecEvent event) override;
  Task<Result<>> still() override;
  // After the last event. An error that came when the stream had begun becomes its last event.
  Task<Result<>> finish(Result<> done, std::string request_id);
  bool begun() const { return begun_; }

 private:
  Task<Result<>> write(std::string text);

  http::Responder& responder_;
  http::Headers extra_;
  bool begun_ = false;
  bool gone_ = false;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace osb::api::sessions
