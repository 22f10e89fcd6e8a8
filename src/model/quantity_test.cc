#include "model/quantity.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace osb {
namespace {

TEST(Quantity, ReadsEveryUnitOfBytesInAnyCase) {
  struct Row {
    const char* text;
    std::uint64_t bytes;
  };
  const Row rows[] = {
      {"1", 1},
      {"1b", 1},
      {"1B", 1},
      {"1k", 1000},
      {"1K", 1000},
      {"1kb", 1000},
      {"1KB", 1000},
      {"1ki", 1024},
      {"1Ki", 1024},
      {"1KIB", 1024},
      {"64Mi", 64ull << 20},
      {"64mib", 64ull << 20},
      {"64M", 64'000'000},
      {"64mb", 64'000'000},
      {"2Gi", 2ull << 30},
      {"2g", 2'000'000'000},
      {"2GB", 2'000'000'000},
      {"1Ti", 1ull << 40},
      {"1t", 1'000'000'000'000},
      {"1p", 1'000'000'000'000'000},
      {"1Pi", 1ull << 50},
      {"1e", 1'000'000'000'000'000'000},
      {"15Ei", 15ull << 60},
      {"1.5Gi", 3ull << 29},
      {"0.5k", 500},
      {"0.1Gi", 107374182},
      {"0001k", 1000},
      {"1.000000000000000000k", 1000},
      {"18446744073709551615", 18446744073709551615ull},
  };
  for (const auto& row : rows) {
    auto bytes = parse_bytes(row.text);
    ASSERT_TRUE(bytes) << row.text;
    EXPECT_EQ(*bytes, row.bytes) << row.text;
  }
}

TEST(Quantity, RefusesEveryAbsurdNumberOfBytes) {
  const std::string_view rows[] = {
      "",
      " ",
      "0",
      "0Mi",
      "0.0",
      "-1",
      "-1Mi",
      "+1",
      "NaN",
      "nan",
      "inf",
      "Infinity",
      "-inf",
      "1e3",
      "1e999",
      "0x10",
      "1_000",
      "1,5",
      "1 Mi",
      " 1Mi",
      "1Mi ",
      "Mi",
      "1MiMi",
      "1 ",
      ".5",
      "1.",
      "1..2",
      "1.2.3",
      "0.1",
      "0.0001k",
      "16Ei",
      "18446744073709551616",
      "99999999999999999999999999999999",
      "9999999999Ei",
      "1.0000000000000000001k",
      "1m1",
      "1bb",
      "1kbi",
      "1i",
      "1ib",
      "\xEF\xBC\x91Mi",
      "1\n",
      "1Zi",
      "unlimited",
      "max",
      "1234567890123456789012345678901234567890123456789012345678901234567890Mi",
  };
  for (auto row : rows) {
    auto bytes = parse_bytes(row);
    ASSERT_FALSE(bytes) << row;
    EXPECT_EQ(bytes.error().kind(), Errc::invalid_argument) << row;
    EXPECT_FALSE(bytes.error().what().empty());
  }
  EXPECT_FALSE(parse_bytes(std::string_view("1\0Mi", 4)));
}

TEST(Quantity, ReadsCpusAsExactThousandths) {
  struct Row {
    const char* text;
    std::uint32_t millis;
  };
  const Row rows[] = {{"1", 1000},   {"500m", 500}, {"0.5", 500},    {"0.001", 1},       {"1.5", 1500},
                      {"0.10", 100}, {"4", 4000},   {"1500m", 1500}, {"0.1000000", 100}, {"2.0m", 2}};
  for (const auto& row : rows) {
    auto millis = parse_cpu_millis(row.text);
    ASSERT_TRUE(millis) << row.text;
    EXPECT_EQ(*millis, row.millis) << row.text;
  }
}

TEST(Quantity, RefusesEveryAbsurdNumberOfCpus) {
  for (std::string_view row : {"",
                               "0",
                               "0m",
                               "0.0",
                               "-1",
                               "-500m",
                               "NaN",
                               "inf",
                               "1e3",
                               "0.0001",
                               "0.5m",
                               "1M",
                               "1 ",
                               " 1",
                               "m",
                               "1mm",
                               "4294968",
                               "4294967296m",
                               "18446744073709551615",
                               "1/2",
                               "0x1",
                               "one"})
    EXPECT_FALSE(parse_cpu_millis(row)) << row;
}

TEST(Quantity, HoldsEachResourceToItsBounds) {
  EXPECT_EQ(*parse_memory("16Mi"), kMinMemoryBytes);
  EXPECT_FALSE(parse_memory("16777215"));
  EXPECT_EQ(*parse_memory("1Ti"), kMaxMemoryBytes);
  EXPECT_FALSE(parse_memory("1099511627777"));
  EXPECT_EQ(*parse_disk("1Mi"), kMinDiskBytes);
  EXPECT_FALSE(parse_disk("1M"));
  EXPECT_EQ(*parse_disk("16Ti"), kMaxDiskBytes);
  EXPECT_FALSE(parse_disk("17Ti"));
  EXPECT_EQ(*parse_cpu("10m"), kMinCpuMillis);
  EXPECT_FALSE(parse_cpu("9m"));
  EXPECT_EQ(*parse_cpu("1024"), kMaxCpuMillis);
  EXPECT_FALSE(parse_cpu("1024.001"));
  EXPECT_EQ(*parse_pids("8"), kMinPids);
  EXPECT_FALSE(parse_pids("7"));
  EXPECT_EQ(*parse_pids("32768"), kMaxPids);
  for (std::string_view row : {"32769", "", "-1", "1e2", "NaN", "100 ", "4294967304", "9999999999999999999999"})
    EXPECT_FALSE(parse_pids(row)) << row;
}

TEST(Quantity, ErrorsShowTheValueWithoutItsControlCharacters) {
  auto bytes = parse_bytes("\x1b[31m9");
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().what().find('\x1b'), std::string::npos);
  auto bounded = parse_memory("1Ki");
  ASSERT_FALSE(bounded);
  EXPECT_NE(bounded.error().what().find("16Mi to 1Ti"), std::string::npos);
}

}  // namespace
}  // namespace osb
