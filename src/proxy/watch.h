// Reads the end of a command out of the bytes that stream by. The bytes come from inside the sandbox: they are a
// claim, bounded in memory, never trusted for anything but the audit record.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace osb::proxy {

struct CommandEnd {
  std::string exit_code;  // decimal, or empty when none was told
  std::string cause;      // "exited", "timed_out", ...; at most 64 bytes
};

class Watch {
 public:
  virtual ~Watch() = default;
  virtual void feed(std::string_view bytes) = 0;
  const std::optional<CommandEnd>& end() const { return end_; }

 protected:
  static constexpr std::size_t kMaxRecord = 4096;  // a longer record is skipped, not kept
  std::optional<CommandEnd> end_;
};

// Event lines of /command, /session/{id}/run and /code: "error" or "execution_complete" ends the run.
class EventWatch : public Watch {
 public:
  void feed(std::string_view bytes) override;

 private:
  void take_line(std::string_view line);
  std::string line_;  // begun in an earlier feed
  bool too_long_ = false;
};

// A terminal that stays when its client goes: any byte that came back, and the end of the connection, is all there is to know.
class HangupWatch : public Watch {
 public:
  void feed(std::string_view) override {
    if (!end_) end_.emplace();
  }
};

// Frames of the exec protocol: type 12 ends the run.
class FrameWatch : public Watch {
 public:
  void feed(std::string_view bytes) override;

 private:
  void take_payload(std::string_view& bytes);
  std::string head_;
  std::string payload_;
  std::uint32_t left_ = 0;  // bytes of the current payload still to come
  bool in_payload_ = false;
};

}  // namespace osb::proxy
