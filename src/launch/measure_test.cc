#include "launch/measure.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace osb::launch {
namespace {

TEST(Measure, SumsTheBytesOfAllInterfaces) {
  auto usage = parse_net_dev(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
      "    lo:  120       2    0    0    0     0          0         0      120       2    0    0    0     0       0          0\n"
      "  eth0:1000      10    0    0    0     0          0         0       77       1    0    0    0     0       0          0\n");
  EXPECT_EQ(usage.received_bytes, 1120u);
  EXPECT_EQ(usage.sent_bytes, 197u);
}

TEST(Measure, TextThatIsNoTableIsZero) {
  EXPECT_EQ(parse_net_dev("").received_bytes, 0u);
  EXPECT_EQ(parse_net_dev("lo: many bytes\n").received_bytes, 0u);
}

TEST(Measure, AProcessThatIsNotThereIsZero) {
  EXPECT_EQ(store_of(0).total_bytes, 0u);
  EXPECT_EQ(network_of(0).sent_bytes, 0u);
}

}  // namespace
}  // namespace osb::launch
