// Runs: the runs clients can still read on from, by id or by the idempotency key of the request that started them.
//
// Bounded like commands: 256 that have ended, for an hour, forgotten when somebody looks. What they keep shares one budget
// with the logs of background commands; the oldest that have ended and that nobody reads give way first.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "execd/output_budget.h"
#include "execd/runs/run.h"
#include "http/http.h"

namespace osb::execd::runs {

class Runs final : public OutputKeeper {
 public:
  static constexpr std::size_t kMaxEnded = 256;
  static constexpr std::int64_t kKeepNanos = 3600LL * 1'000'000'000;

  Runs(Executor executor, OutputBudget& budget) : executor_(executor), budget_(budget) { budget_.add(*this); }

  std::shared_ptr<Run> add(Key key = {});  // with a new id of 32 hex digits
  std::shared_ptr<Run> find(std::string_view id);
  // The run a request with this key has started; nullptr when there is none. Errc::conflict: another request had it.
  Result<std::shared_ptr<Run>> find(const Key& key);
  std::size_t size() const { return runs_.size(); }

  bool release_oldest(const void* asker) override;
  // Of runs whose client has had everything only the last events stay.
  void give_back();

 private:
  void forget_old();

  Executor executor_;
  OutputBudget& budget_;
  std::vector<std::shared_ptr<Run>> runs_;  // oldest first
};

// The header "Idempotency-Key": 1 to 128 of [A-Za-z0-9._:-]. Absent: an empty key; anything else is invalid_argument.
Result<Key> read_key(const http::Request& request, std::string_view body);

}  // namespace osb::execd::runs
