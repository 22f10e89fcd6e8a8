// The leak ledger: what each sandbox has on the host, written before the first object is made and struck off after the
// last one is gone. It is one file in shared memory: a record costs a few stores, and outlives the launcher's death.
#pragma once
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/ledger_record.h"

namespace osb::launch {

class Ledger {
 public:
  // Opens or makes the file; its space is reserved, so that recording cannot fail for want of disk.
  static Result<Ledger> open(const std::string& path);
  Ledger(Ledger&& other) noexcept;
  Ledger& operator=(Ledger&&) = delete;
  ~Ledger();

  Result<> write(const LedgerRecord& record);  // into the slot of its range; Errc::conflict when another id has it
  void strike(std::uint32_t range);
  std::vector<LedgerRecord> all() const;

 private:
  explicit Ledger(char* slots) : slots_(slots) {}
  char* slots_ = nullptr;
};

std::string current_boot_id();

}  // namespace osb::launch
