// Reads the event stream of execd (spec/execd.yaml, Event) as events of a session's command.
//
// The bytes come from inside a sandbox: bounded, checked, and never more than a claim about what happened in there.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "session/values.h"

namespace osb::session {

class EventReader {
 public:
  // `is_code`: the run of a context, whose id becomes part of the exec's.
  EventReader(std::string session_id, bool is_code) : session_id_(std::move(session_id)), is_code_(is_code) {}

  void feed(std::string_view bytes);
  // nullopt: bytes are missing. Errc::unavailable: this is no event stream.
  Result<std::optional<ExecEvent>> next();
  std::uint64_t last_seq() const { return last_seq_; }
  const std::string& context() const { return context_; }  // of code, once it has started

 private:
  std::optional<ExecEvent> read(std::string_view line);
  static constexpr std::size_t kMaxLine = 5u << 20;  // execd's longest, the result of code, stays below 4 MiB

  std::string session_id_;
  bool is_code_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t scanned_ = 0;  // no line end before it
  std::uint64_t last_seq_ = 0;
  std::string context_;
};

// The id of a code run names its context too, so that it can be interrupted by whoever knows the id.
std::string exec_id_of(std::string_view run, std::string_view context);
struct ExecName {
  std::string run;
  std::string context;  // "" = a command
};
std::optional<ExecName> parse_exec_id(std::string_view id);

}  // namespace osb::session
