#include "lifecycle/events.h"

#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

class EventsTest : public ServiceFixture {
 protected:
  std::string types(const SandboxId& id) {
    std::string out;
    auto log = service_->events(id, kLocal);
    if (!log) return log.error().code();
    for (const auto& event : log->events()) out += cat(out.empty() ? "" : " ", event.type);
    return out;
  }
};

TEST_F(EventsTest, TellTheLifeOfASandboxInOrder) {
  auto id = make().id;
  EXPECT_EQ(types(id), "created started");
  ASSERT_TRUE(run(service_->pause(id, kAlice)));
  ASSERT_TRUE(run(service_->resume(id, kAlice)));
  ASSERT_TRUE(run(service_->renew(id, {wall_now().micros + 900'000'000}, kAlice)));
  ASSERT_TRUE(service_->patch_metadata(id, {{"team", "x"}}, kAlice));
  runtime_.end(id, runtime::EndCause::out_of_memory, 9);
  EXPECT_EQ(types(id), "created started paused resumed renewed relabelled oom_killed");
}

TEST_F(EventsTest, AreTheOwnersOnly) {
  auto id = make().id;
  EXPECT_FALSE(service_->events(id, kBob));
  EXPECT_TRUE(service_->events(id, kAlice));
}

TEST_F(EventsTest, OfAStoredSandboxBeginWithWhatTheRecordTells) {
  auto id = make().id;
  ASSERT_TRUE(run(service_->pause(id, kAlice)));
  ASSERT_TRUE(restart());
  EXPECT_EQ(types(id), "created started paused adopted");
}

TEST(EventLog, KeepsTheNewestAndCountsTheRest) {
  EventLog log;
  for (std::size_t i = 0; i < EventLog::kMost + 3; ++i) log.add({WallTime{static_cast<std::int64_t>(i)}, "renewed", "", ""});
  EXPECT_EQ(log.events().size(), EventLog::kMost);
  EXPECT_EQ(log.dropped(), 3u);
  EXPECT_EQ(log.events().front().at.micros, 3);
}

}  // namespace
}  // namespace osb::lifecycle
