// The audit log: one JSON object a line, append-only. A mutation that cannot be recorded does not happen.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/caller.h"

namespace osb::audit {

// What happened. `detail` pairs become members of "detail"; values are strings and are escaped.
struct Event {
  std::string action;   // "sandbox.create", "sandbox.delete", "sandbox.expire", "command.start", "command.end", ...
  std::string sandbox;  // id or empty
  std::string outcome;  // "ok", or an error code
  std::vector<std::pair<std::string, std::string>> detail;
};

// Line: {"v":1,"seq":N,"time":RFC3339,"boot_nanos":N,"actor":..,"request_id":..,"action":..,"sandbox":..,"outcome":..,"detail":{..},"prev":""}
// "prev" is where the hash of the previous record will stand once the chain exists.
class Log {
 public:
  // Opens (creates 0600) `directory`/audit.jsonl with O_APPEND and continues its sequence numbers.
  static Result<std::unique_ptr<Log>> open(const std::string& directory);
  static std::unique_ptr<Log> discard();  // for tests
  Result<> record(const Caller& caller, const Event& event);  // one write(2); unavailable when it cannot be written whole
  std::uint64_t next_seq() const { return seq_; }

 private:
  Log() = default;
  Fd file_;
  std::uint64_t seq_ = 1;
};

}  // namespace osb::audit
