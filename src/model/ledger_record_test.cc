#include "model/ledger_record.h"

#include <gtest/gtest.h>

#include "base/id.h"

namespace osb {
namespace {

TEST(LedgerLine, ComesBackAsItWas) {
  LedgerRecord record{random_id_text(), 16383, 18446744073709551615ull, "0b9d5c1e-6f0c-4a0b-9a3c-2f7d1b0f4e55"};
  auto line = render_ledger_line(record);
  EXPECT_EQ(line.size(), kLedgerLine);
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(parse_ledger_line(line), record);
}

TEST(LedgerLine, FreeSlotsAreNoRecords) {
  EXPECT_FALSE(parse_ledger_line(std::string(kLedgerLine, '\0')));
  EXPECT_FALSE(parse_ledger_line(std::string(kLedgerLine, ' ')));
  EXPECT_FALSE(parse_ledger_line("short\n"));
}

TEST(Ledger, IsReadSlotBySlotAndATornTailIsIgnored) {
  LedgerRecord a{random_id_text(), 0, 0, "b"};
  LedgerRecord c{random_id_text(), 2, 9, "b"};
  auto file = render_ledger_line(a) + std::string(kLedgerLine, '\0') + render_ledger_line(c) + "torn";
  EXPECT_EQ(parse_ledger(file), (std::vector{a, c}));
}

}  // namespace
}  // namespace osb
