#include "grpc_door/h2_gate.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace osb::grpc_door {
namespace {

using namespace std::chrono_literals;

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const std::chrono::steady_clock::time_point kNow{1000s};

std::string frame(int type, int flags, std::string payload) {
  std::string out;
  for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(payload.size() >> shift & 0xFF);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  out += std::string("\0\0\0\1", 4);
  return out + payload;
}

std::string settings() { return frame(4, 0, ""); }
std::string headers(std::size_t size, bool end) { return frame(1, end ? 4 : 0, std::string(size, 'h')); }
std::string continuation(std::size_t size, bool end) { return frame(9, end ? 4 : 0, std::string(size, 'c')); }

// How many frames pass after a good beginning, at one moment.
int passed(std::string_view one, int most) {
  H2Gate gate;
  EXPECT_TRUE(gate.take(kPreface + settings(), kNow));
  int count = 0;
  while (count < most && gate.take(one, kNow)) ++count;
  return count;
}

TEST(H2Gate, AnOrdinaryCallPassesByteByByte) {
  H2Gate gate;
  auto all =
      kPreface + settings() + frame(4, 1, "") + headers(200, true) + frame(0, 1, "12345") + frame(8, 0, "1234") + frame(6, 0, "12345678");
  for (char c : all) ASSERT_TRUE(gate.take({&c, 1}, kNow)) << gate.why();
  EXPECT_TRUE(gate.greeted());
}

TEST(H2Gate, WhatIsNotHttp2IsRefusedAtItsFirstWrongByte) {
  for (std::string_view text : {"GET / HTTP/1.1\r\n", "\x16\x03\x01", "PRI * HTTP/2.0\r\n\r\nXX"}) {
    H2Gate gate;
    EXPECT_FALSE(gate.take(text, kNow));
    EXPECT_FALSE(gate.greeted());
    EXPECT_FALSE(gate.take(kPreface, kNow)) << "and for ever after";
  }
}

TEST(H2Gate, TheFirstFrameIsSettings) {
  H2Gate gate;
  EXPECT_FALSE(gate.take(kPreface + headers(10, true), kNow));
}

TEST(H2Gate, HeadersAreBoundedHoweverTheyAreCut) {
  EXPECT_EQ(passed(headers(kMaxHeaderBlock, true), 1), 1);
  EXPECT_EQ(passed(headers(kMaxHeaderBlock + 1, true), 1), 0);
  EXPECT_EQ(passed(headers(kMaxHeaderBlock, false) + continuation(1, true), 1), 0);
  auto cut = headers(10, false);
  for (int i = 0; i < kMaxContinuations; ++i) cut += continuation(10, i + 1 == kMaxContinuations);
  EXPECT_EQ(passed(cut, 1), 1);
  auto flood = headers(10, false);
  for (int i = 0; i <= kMaxContinuations; ++i) flood += continuation(0, false);
  EXPECT_EQ(passed(flood, 1), 0);
  EXPECT_EQ(passed(headers(10, false) + frame(6, 0, "12345678"), 1), 0) << "nothing comes in between";
  EXPECT_EQ(passed(continuation(10, true), 1), 0) << "nothing to continue";
}

TEST(H2Gate, FloodsOfCheapFramesEnd) {
  EXPECT_LE(passed(headers(10, true) + frame(3, 0, "1234"), 100'000), 200) << "rapid reset";
  EXPECT_LE(passed(frame(6, 0, "12345678"), 100'000), 100);
  EXPECT_LE(passed(settings(), 100'000), 32);
  EXPECT_LE(passed(frame(2, 0, "12345"), 100'000), 100);
  EXPECT_LE(passed(frame(0, 0, ""), 100'000), 100);
  EXPECT_LE(passed(frame(77, 0, ""), 100'000), 100) << "a kind nobody knows";
  EXPECT_EQ(passed(frame(0, 0, std::string(1000, 'x')), 5000), 5000) << "an upload is no flood";
}

TEST(H2Gate, ABudgetComesBackWithTime) {
  H2Gate gate;
  ASSERT_TRUE(gate.take(kPreface + settings(), kNow));
  auto ping = frame(6, 0, "12345678");
  for (int second = 0; second < 100; ++second)
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(gate.take(ping, kNow + std::chrono::seconds(second))) << second;
}

TEST(H2Gate, LengthsThatNoFrameHasAreRefused) {
  EXPECT_EQ(passed(frame(6, 0, "1234567"), 1), 0);
  EXPECT_EQ(passed(frame(3, 0, "123"), 1), 0);
  EXPECT_EQ(passed(frame(8, 0, ""), 1), 0);
  EXPECT_EQ(passed(frame(5, 0, "1234"), 1), 0) << "clients push nothing";
  EXPECT_EQ(passed(frame(4, 0, std::string(6 * 33, 's')), 1), 0);
}

}  // namespace
}  // namespace osb::grpc_door
