#include "audit/audit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace osb::audit {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const Caller kCaller{"team-a", false, "req-1"};

class AuditTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-audit-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    dir_ = name;
    log_dir_ = dir_ + "/audit";
  }
  void TearDown() override {
    ::umount2(log_dir_.c_str(), MNT_DETACH);  // left by a test that failed half-way
    fs::remove_all(dir_);
  }

  std::unique_ptr<Log> open() {
    auto log = Log::open(log_dir_);
    EXPECT_TRUE(log) << log.error().what();
    return log ? *std::move(log) : nullptr;
  }
  std::string file() const { return log_dir_ + "/audit.jsonl"; }
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    std::ifstream in(file());
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
  void append_raw(std::string_view bytes) const {
    std::ofstream out(file(), std::ios::app | std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  std::string dir_;
  std::string log_dir_;
};

TEST_F(AuditTest, WritesOneReadableLineForEachRecord) {
  auto log = open();
  ASSERT_TRUE(log->record(kCaller, {"sandbox.create", "abc", "ok", {{"image", "host"}, {"odd\"name", "a\nb\x1b[2J\xFF"}}}));
  ASSERT_TRUE(log->record(kCaller, {"sandbox.delete", "abc", "DOCKER::SANDBOX_NOT_FOUND", {}}));
  auto written = lines();
  ASSERT_EQ(written.size(), 2u);
  auto first = json::parse(written[0]).as_object();
  EXPECT_EQ(first.at("v"), 1);
  EXPECT_EQ(first.at("seq"), 1);
  EXPECT_EQ(first.at("actor"), "team-a");
  EXPECT_EQ(first.at("request_id"), "req-1");
  EXPECT_EQ(first.at("action"), "sandbox.create");
  EXPECT_EQ(first.at("sandbox"), "abc");
  EXPECT_EQ(first.at("outcome"), "ok");
  EXPECT_EQ(first.at("detail").at("image"), "host");
  EXPECT_EQ(first.at("detail").at("odd\"name"), "a\nb\x1b[2J\xEF\xBF\xBD");
  EXPECT_EQ(first.at("prev"), "");
  EXPECT_GT(first.at("boot_nanos").as_int64(), 0);
  EXPECT_EQ(first.at("time").as_string().back(), 'Z');
  EXPECT_EQ(json::parse(written[1]).at("seq"), 2);
  for (char c : written[0]) EXPECT_TRUE(c >= 0x20 && c < 0x7F);
}

TEST_F(AuditTest, FileIsForTheOwnerOnly) {
  auto log = open();
  struct stat info{};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(log_dir_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(AuditTest, ContinuesItsNumbersAfterARestart) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(open()->record(kCaller, {"a", "", "ok", {}}));
  EXPECT_EQ(open()->next_seq(), 4u);
  EXPECT_EQ(lines().size(), 3u);
}

TEST_F(AuditTest, ASecondWriterIsRefused) {
  auto log = open();
  auto second = Log::open(log_dir_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), Errc::conflict);
  log.reset();
  EXPECT_NE(open(), nullptr);
}

TEST_F(AuditTest, ATornLineIsKeptClosedAndFollowedByARecordOfIt) {
  ASSERT_TRUE(open()->record(kCaller, {"a", "", "ok", {}}));
  append_raw(R"({"v":1,"seq":2,"time":"20)");
  auto log = open();
  EXPECT_EQ(log->next_seq(), 3u);
  ASSERT_TRUE(log->record(kCaller, {"b", "", "ok", {}}));
  auto written = lines();
  ASSERT_EQ(written.size(), 4u);
  EXPECT_EQ(written[1], R"({"v":1,"seq":2,"time":"20)");
  auto recovered = json::parse(written[2]).as_object();
  EXPECT_EQ(recovered.at("seq"), 2);
  EXPECT_EQ(recovered.at("action"), "audit.recover");
  EXPECT_EQ(recovered.at("detail").at("torn_bytes"), "25");
  EXPECT_EQ(json::parse(written[3]).at("seq"), 3);
}

TEST_F(AuditTest, EveryCutOfTheLastLineIsRecovered) {
  {
    auto log = open();
    ASSERT_TRUE(log->record(kCaller, {"first", "", "ok", {}}));
    ASSERT_TRUE(log->record(kCaller, {"second", "", "ok", {{"k", "v"}}}));
  }
  auto whole = lines();
  for (std::size_t cut = 1; cut <= whole[1].size(); cut += 7) {
    ASSERT_EQ(::truncate(file().c_str(), 0), 0);
    append_raw(whole[0] + "\n" + whole[1].substr(0, cut));
    auto log = open();
    ASSERT_NE(log, nullptr) << cut;
    EXPECT_EQ(log->next_seq(), 3u) << cut;
  }
  ASSERT_EQ(::truncate(file().c_str(), 0), 0);
  append_raw(whole[0].substr(0, 40));  // the very first record is the torn one
  EXPECT_EQ(open()->next_seq(), 2u);
}

TEST_F(AuditTest, AFileThatIsNotOursIsRefusedAndNotTouched) {
  fs::create_directory(log_dir_);
  for (std::string_view text : {"hello", "hello\n", "{\"seq\":7}\n", "\n\n\n"}) {
    ASSERT_TRUE(::truncate(file().c_str(), 0) == 0 || errno == ENOENT);
    append_raw(text);
    auto log = Log::open(log_dir_);
    ASSERT_FALSE(log) << text;
    EXPECT_EQ(log.error().kind(), Errc::unavailable);
    EXPECT_EQ(fs::file_size(file()), text.size());
  }
  fs::remove(file());
  ASSERT_EQ(::symlink("/dev/null", file().c_str()), 0);
  EXPECT_FALSE(Log::open(log_dir_));
  EXPECT_FALSE(Log::open(dir_ + "/no/such/parent"));
}

TEST_F(AuditTest, GarbageAfterAWholeRecordDoesNotStopTheNumbers) {
  ASSERT_TRUE(open()->record(kCaller, {"a", "", "ok", {}}));
  append_raw(std::string(5000, '\0') + "\n");
  EXPECT_EQ(open()->next_seq(), 2u);
}

TEST_F(AuditTest, LongValuesAreCutAndSaySo) {
  auto log = open();
  Event event{"a", "", "ok", {}};
  for (int i = 0; i < 200; ++i) event.detail.emplace_back(cat("k", i), std::string(i == 0 ? 1 << 20 : 1, 'x'));
  ASSERT_TRUE(log->record(kCaller, event));
  auto line = lines().front();
  EXPECT_LT(line.size(), 8000u);
  auto detail = json::parse(line).at("detail").as_object();
  EXPECT_EQ(detail.size(), Log::kMaxDetails);
  EXPECT_NE(detail.at("k0").as_string().find("cut, 1048576 bytes"), json::string::npos);
}

TEST_F(AuditTest, AFullDiskRefusesTheRecordWholeAndPassesAgain) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root for a small tmpfs";
  fs::create_directory(log_dir_);
  ASSERT_EQ(::mount("tmpfs", log_dir_.c_str(), "tmpfs", 0, "size=1m"), 0);
  {
    auto log = open();
    ASSERT_TRUE(log->record(kCaller, {"before", "", "ok", {}}));
    {
      std::ofstream(log_dir_ + "/ballast") << std::string(2'000'000, 'b');
    }
    // Space was kept ahead: what is recorded next still fits although the disk is full.
    ASSERT_TRUE(log->record(kCaller, {"sandbox.delete", "", "ok", {}}));
    Result<> recorded = Ok{};
    Event big{"fill", "", "ok", {{"x", std::string(3000, 'x')}}};
    std::size_t written = 2;
    while (recorded && written < 10'000) {
      recorded = log->record(kCaller, big);
      if (recorded) ++written;
    }
    ASSERT_FALSE(recorded);
    EXPECT_EQ(recorded.error().kind(), Errc::unavailable);
    EXPECT_EQ(log->next_seq(), written + 1);
    fs::remove(log_dir_ + "/ballast");
    ASSERT_TRUE(log->record(kCaller, {"after", "", "ok", {}}));
    auto all = lines();
    ASSERT_EQ(all.size(), written + 1);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(json::parse(all[i]).at("seq").to_number<std::size_t>(), i + 1);
  }
  ASSERT_EQ(::umount2(log_dir_.c_str(), MNT_DETACH), 0);
}

TEST_F(AuditTest, EverythingAcknowledgedSurvivesKillMinusNine) {
  // A kill may cut the line that is being written; it was not acknowledged, and the numbers of the others still rise.
  auto whole_records = [this] {
    std::size_t count = 0;
    std::size_t last = 0;
    for (const auto& line : lines()) {
      boost::system::error_code cut;
      auto record = json::parse(line, cut);
      if (cut) continue;
      auto seq = record.at("seq").to_number<std::size_t>();
      EXPECT_GT(seq, last);
      last = seq;
      count += record.at("action").as_string() == "a" ? 1 : 0;
    }
    return count;
  };
  for (int round = 0; round < 10; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    auto before = whole_records();
    pid_t pid = ::fork();
    if (pid == 0) {
      auto log = Log::open(log_dir_);
      if (!log) ::_exit(3);
      while ((*log)->record(kCaller, {"a", "", "ok", {}}) && ::write(pipe[1], "x", 1) == 1) {
      }
      ::_exit(4);
    }
    ::close(pipe[1]);
    char byte;
    std::size_t acknowledged = 0;
    while (::read(pipe[0], &byte, 1) == 1)
      if (++acknowledged == 50) ::kill(pid, SIGKILL);
    ::close(pipe[0]);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_GE(whole_records(), before + acknowledged);
  }
}

TEST(Audit, DiscardCountsAndToHandsLinesOver) {
  auto log = Log::discard();
  ASSERT_TRUE(log->record(kCaller, {"a", "", "ok", {}}));
  EXPECT_EQ(log->next_seq(), 2u);
  bool refuse = false;
  std::string seen;
  auto sink = Log::to([&](std::string_view line) -> Result<> {
    if (refuse) return Error(Errc::unavailable, "no");
    seen += line;
    return Ok{};
  });
  ASSERT_TRUE(sink->record(kCaller, {"a", "", "ok", {}}));
  refuse = true;
  EXPECT_FALSE(sink->record(kCaller, {"b", "", "ok", {}}));
  EXPECT_EQ(sink->next_seq(), 2u);
  EXPECT_NE(seen.find("\"action\":\"a\""), std::string::npos);
}

}  // namespace
}  // namespace osb::audit
