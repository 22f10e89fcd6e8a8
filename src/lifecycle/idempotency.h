// Creates that may be asked for more than once: a key of the client's, the same request again, and the same sandbox.
//
// A key belongs to one caller for 24 hours and is written down together with its sandbox. While the first create is under
// way, others with its key wait for it. A create that fails frees its key. The newest kMost keys are kept.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "async/task.h"
#include "base/result.h"
#include "model/caller.h"
#include "model/sandbox.h"
#include "store/store.h"

namespace osb::lifecycle {

// 1 to 128 of [A-Za-z0-9._:-].
bool is_idempotency_key(std::string_view text);

struct CreateOnce {
  std::string key;
  std::string fingerprint;  // equal for equal requests
};

class CreateKeys {
 public:
  static constexpr std::size_t kMost = 10'000;
  static constexpr std::int64_t kLifetimeMicros = 24ll * 3600 * 1'000'000;

  CreateKeys(asio::io_context& io, store::Store& store) : io_(io), store_(store) {}
  Result<> load();

  // The create under way or done with this key, or nothing. Errc::malformed with IDEMPOTENCY::CONFLICT: another request had it.
  struct Slot {
    explicit Slot(Executor executor) : changed(executor, Timer::time_point::max()) {}
    store::CreateKey record;      // `sandbox` is empty while it is under way
    std::optional<Error> failed;  // why it failed, for those who wait
    Timer changed;                // cancelled, which wakes its waiters, when it is over
  };
  Result<std::shared_ptr<Slot>> find(const std::string& owner, const CreateOnce& once, WallTime now);
  std::shared_ptr<Slot> begin(const std::string& owner, const CreateOnce& once, WallTime now);
  void finish(const std::shared_ptr<Slot>& slot, const Result<SandboxId>& made);
  std::size_t size() const { return slots_.size(); }

 private:
  using Name = std::pair<std::string, std::string>;  // owner, key
  static Name name_of(const store::CreateKey& record) { return {record.owner, record.key}; }
  void drop_old(WallTime now);
  void forget(const Name& name);

  asio::io_context& io_;
  store::Store& store_;
  std::map<Name, std::shared_ptr<Slot>> slots_;
  std::set<std::pair<std::int64_t, Name>> by_age_;
};

}  // namespace osb::lifecycle
