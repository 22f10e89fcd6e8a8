// One line of the launcher's ledger: what exists of one sandbox on the host. All other names derive from the id.
//
// The ledger is a file of lines of one fixed length, one slot for each id range; a line that does not begin with an id is
// a free slot. People can read it, and a record is written with a few stores into shared memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace osb {

struct LedgerRecord {
  std::string id;
  std::uint32_t range = 0;                // number of its id range; also its slot
  std::uint64_t deadline_boot_nanos = 0;  // 0 = none
  std::string boot_id;                    // processes and groups of another boot are gone by themselves
  bool spare = false;                     // made ahead of time and nobody's yet: ends with the launcher that made it
  std::uint64_t cpu_nanos_before = 0;     // what its groups had used up before it came
  bool operator==(const LedgerRecord&) const = default;
};

inline constexpr std::size_t kLedgerLine = 128;

// Exactly kLedgerLine bytes: "<id> range <n> deadline <n> boot <uuid>[ spare 1] cpu <n>", padded with spaces, ended by a newline.
std::string render_ledger_line(const LedgerRecord& record);
// nullopt for a free slot.
std::optional<LedgerRecord> parse_ledger_line(std::string_view line);
std::vector<LedgerRecord> parse_ledger(std::string_view file);

}  // namespace osb
