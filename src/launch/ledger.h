// The leak ledger: one small file a sandbox, written before the first host object is made, struck off after the last
// one is gone. Every host object's name derives from the id, so the file and the kernel tell the whole story after a crash.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

struct LedgerRecord {
  std::string id;
  std::uint32_t range = 0;                // number of its id range
  std::uint64_t deadline_boot_nanos = 0;  // 0 = none
  std::string boot_id;                    // processes and groups of another boot are gone by themselves
};

class Ledger {
 public:
  static Result<Ledger> open(const std::string& directory);

  Result<> add(const LedgerRecord& record);       // fails if the id is there already
  Result<> update(const LedgerRecord& record);    // replaces whole, by rename
  Result<> strike(std::string_view id);           // idempotent
  Result<std::vector<LedgerRecord>> all() const;  // an unreadable record still appears, with only its id

 private:
  Fd dir_;
};

std::string render(const LedgerRecord& record);
LedgerRecord parse_record(std::string id, std::string_view text);

std::string current_boot_id();

}  // namespace osb::launch
