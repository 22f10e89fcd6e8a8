// What execd says about the container around it and the processes in it.
#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <filesystem>

#include "execd/daemon_fixture.h"
#include "execd/metrics/gauge.h"

namespace osb::execd {
namespace {

using testing::HasSubstr;
using testing::Not;

class Tree : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/osb-metrics-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    root_ = path;
    write("/proc/meminfo", "MemTotal:        1024 kB\nMemFree: 1 kB\nMemAvailable:     256 kB\n");
    write("/proc/stat", "cpu  100 0 50 900 9 1 1 0 0 0\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, std::string_view text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(Tree, WithoutGroupsTheMachineIsMeasured) {
  auto sample = metrics::take_sample(root_);
  EXPECT_EQ(sample.memory_total, 1024u * 1024);
  EXPECT_EQ(sample.memory_bytes, 768u * 1024);
  EXPECT_GT(sample.cpu_nanos, 0u);
  EXPECT_GE(sample.cpu_millis, 1000u);
}

TEST_F(Tree, AVersion2GroupWithLimits) {
  write("/sys/fs/cgroup/cpu.stat", "usage_usec 5000\nuser_usec 1\n");
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  write("/sys/fs/cgroup/memory.current", "3000\n");
  write("/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 1000\n");
  write("/sys/fs/cgroup/memory.max", "4096\n");
  auto sample = metrics::take_sample(root_);
  EXPECT_EQ(sample.cpu_nanos, 5'000'000u);
  EXPECT_EQ(sample.cpu_millis, 500u);
  EXPECT_EQ(sample.memory_bytes, 2000u);
  EXPECT_EQ(sample.memory_total, 4096u);
}

TEST_F(Tree, AVersion1GroupWhoseLimitIsMoreThanThereIs) {
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "3000\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/cpuacct/cpuacct.usage", "77\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  auto sample = metrics::take_sample(root_);
  EXPECT_EQ(sample.cpu_nanos, 77u);
  EXPECT_GE(sample.cpu_millis, 1000u);
  EXPECT_EQ(sample.memory_total, 1024u * 1024);
}

TEST(Gauge, TheRateIsTheDifferenceAndNeverPast100) {
  metrics::Gauge gauge;
  metrics::Sample sample{.cpu_nanos = 0, .cpu_millis = 2000, .memory_bytes = 1 << 20, .memory_total = 2 << 20};
  gauge.json(sample, 1'000'000'000, false);
  sample.cpu_nanos = 1'000'000'000;
  EXPECT_THAT(gauge.json(sample, 2'000'000'000, false), HasSubstr("\"cpu_used_pct\":50.000"));
  EXPECT_THAT(gauge.json(sample, 2'000'000'001, true), HasSubstr("\"cpu_used_percentage\":50.000")) << "too soon for another rate";
  sample.cpu_nanos = 100'000'000'000;
  EXPECT_THAT(gauge.json(sample, 3'000'000'000, false), HasSubstr("\"cpu_used_pct\":100.000"));
}

TEST_F(DaemonTest, MetricsAreNumbersWithinTheirBounds) {
  start(start_elsewhere({}, ""));
  auto reply = ask("GET", "/metrics");
  ASSERT_EQ(reply.status, 200);
  auto object = boost::json::parse(reply.body).as_object();
  EXPECT_GT(object.at("cpu_count").as_double(), 0);
  EXPECT_GT(object.at("mem_total_mib").as_double(), 0);
  EXPECT_LE(object.at("mem_used_mib").as_double(), object.at("mem_total_mib").as_double());
}

TEST_F(DaemonTest, AWatchBeginsAtOnceAndSeparatesObjectsByAnEmptyLine) {
  start(start_elsewhere({}, ""));
  Wire wire = connect();
  wire.request("GET", "/metrics/watch");
  EXPECT_TRUE(wire.head().has("text/event-stream"));
  for (int i = 0; i < 2; ++i) {
    auto event = wire.chunk();
    EXPECT_THAT(event, HasSubstr("memory_used_in_mib"));
    EXPECT_TRUE(event.ends_with("}\n\n"));
  }
}

TEST_F(DaemonTest, ProcessesAreToldWithTheirCommandLines) {
  start(start_elsewhere({"sh", "-c", "sleep 4711; true"}, ""));
  ASSERT_TRUE(eventually([&] { return ask("GET", "/osb/v1/processes").body.find("sleep 4711; true") != std::string::npos; }));
  auto object = boost::json::parse(ask("GET", "/osb/v1/processes").body).as_object();
  EXPECT_GE(object.at("processes").as_array().size(), 2u);
}

}  // namespace
}  // namespace osb::execd
