// The audit log: one JSON object a line, append-only. A mutation that cannot be recorded does not happen.
#pragma once
#include <cstdint>
#include <functional>
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

// Line:
// {"v":1,"seq":N,"time":RFC3339,"boot_nanos":N,"actor":..,"request_id":..,"action":..,"sandbox":..,"outcome":..,"detail":{..},"prev":""}
// "prev" is where the hash of the previous record will stand once the chain exists.
//
// A line that a crash cut short stays in the file, ended by a newline, and is followed by an "audit.recover" record;
// sequence numbers count whole records only. Values longer than kMaxValueBytes are cut and say so.
class Log {
 public:
  static constexpr std::size_t kMaxValueBytes = 4096;
  static constexpr std::size_t kMaxDetails = 64;

  // Opens (creates 0600) `directory`/audit.jsonl with O_APPEND and continues its sequence numbers. The directory is
  // made (0700) when only its last part is missing. Errc::conflict while another process writes there,
  // Errc::unavailable when the file holds no record we can continue from.
  static Result<std::unique_ptr<Log>> open(const std::string& directory);
  static std::unique_ptr<Log> discard();  // for tests
  // For tests: every line goes to `sink`, whose error is the error of record().
  static std::unique_ptr<Log> to(std::function<Result<>(std::string_view line)> sink);
  Result<> record(const Caller& caller, const Event& event);  // one write(2); unavailable when it cannot be written whole
  std::uint64_t next_seq() const { return seq_; }

 private:
  Log() = default;
  Result<> resume();                       // finds the last whole record, closes a torn one
  Result<> append(std::string_view line);  // whole or not at all
  void reserve();

  Fd file_;
  std::function<Result<>(std::string_view)> sink_;
  std::string path_;
  std::uint64_t seq_ = 1;
  std::int64_t size_ = 0;  // end of the last whole line
  std::int64_t reserved_until_ = 0;
  bool torn_ = false;  // bytes after size_ could not be taken back
};

}  // namespace osb::audit
