#include "lifecycle/spares.h"

#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(DemandTest, GrowsWithEveryMissUpToItsBoundAndNotWithHits) {
  Demand demand({.most = 64, .most_of_one = 6, .first_batch = 2, .idle_seconds = 60});
  EXPECT_EQ(demand.wanted(), 0u);
  demand.asked(false, kSecond);
  EXPECT_EQ(demand.wanted(), 2u);
  demand.asked(true, kSecond);
  EXPECT_EQ(demand.wanted(), 2u);
  demand.asked(false, kSecond);
  EXPECT_EQ(demand.wanted(), 4u);
  demand.asked(false, kSecond);
  EXPECT_EQ(demand.wanted(), 6u);
}

TEST(DemandTest, HalvesWhileNobodyAsksUntilNothingIsWanted) {
  Demand demand({.most = 64, .most_of_one = 8, .first_batch = 4, .idle_seconds = 60});
  demand.asked(false, 100 * kSecond);
  demand.passed(159 * kSecond);
  EXPECT_EQ(demand.wanted(), 4u);
  demand.passed(160 * kSecond);
  EXPECT_EQ(demand.wanted(), 2u);
  demand.passed(161 * kSecond);
  EXPECT_EQ(demand.wanted(), 2u);
  demand.passed(220 * kSecond);
  demand.passed(280 * kSecond);
  EXPECT_EQ(demand.wanted(), 0u);
}

class SparesTest : public ServiceFixture {
 protected:
  void SetUp() override {
    runtime_.set_spares_supported(true);
    ServiceFixture::SetUp();
  }
  bool prepared(std::size_t count) {
    return until([&] { return runtime_.count("prepare") == count && runtime_.sandboxes.size() >= count; });
  }
};

TEST_F(SparesTest, TheSecondCreateOfAShapeClaimsWhatWasMadeAfterTheFirst) {
  auto first = make();
  EXPECT_EQ(runtime_.count("claim"), 0u);
  ASSERT_TRUE(prepared(2));
  EXPECT_EQ(service_->list({}, 1, 10, kLocal).total, 1u);  // spares are nobody's sandboxes
  auto second = make(kBob);
  EXPECT_EQ(runtime_.count("claim"), 1u);
  EXPECT_EQ(runtime_.count("create"), 1u);
  EXPECT_NE(first.id.text(), second.id.text());
  EXPECT_EQ(second.owner, "bob");
  EXPECT_EQ(runtime_.sandboxes.at(second.id.text()).deadline_boot_nanos, second.deadline_boot_nanos);
  EXPECT_EQ(store_.rows.at(second.id.text()).owner, "bob");
  ASSERT_TRUE(run(service_->destroy(second.id, kBob)));
  EXPECT_FALSE(runtime_.sandboxes.contains(second.id.text()));  // gone, not kept for the next
}

TEST_F(SparesTest, NoneIsMadeWhileCreatesNeedTheProcessors) {
  runtime_.hold("create");
  auto first = begin(service_->create(spec(), kLocal));
  ASSERT_TRUE(until([&] { return runtime_.waiting("create") == 1; }));
  auto later = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);  // several looks at the shelves
  until([&] { return std::chrono::steady_clock::now() > later; });
  EXPECT_EQ(runtime_.count("prepare"), 0u);
  runtime_.release("create");
  EXPECT_TRUE(prepared(2));  // control
}

TEST_F(SparesTest, AnotherShapeIsNotServedFromIt) {
  make();
  ASSERT_TRUE(prepared(2));
  auto wanted = spec();
  wanted.limits.memory_bytes *= 2;
  ASSERT_TRUE(run(service_->create(wanted, kAlice)));
  EXPECT_EQ(runtime_.count("claim"), 0u);
  EXPECT_EQ(runtime_.count("create"), 2u);
}

TEST_F(SparesTest, ALostSpareMeansTheSlowerWayAndNoError) {
  make();
  ASSERT_TRUE(prepared(2));
  runtime_.fail_next("claim", Error(Errc::unavailable, "gone"));
  auto made = make();
  EXPECT_EQ(runtime_.count("create"), 2u);
  EXPECT_TRUE(exists(made.id));
}

TEST_F(SparesTest, AFirstProgramThatCannotStartIsTheCallersError) {
  make();
  ASSERT_TRUE(prepared(2));
  runtime_.fail_next("claim", Error(Errc::invalid_argument, "no such program").with_code("DOCKER::INVALID_ENTRYPOINT"));
  auto made = run(service_->create(spec(), kAlice));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), "DOCKER::INVALID_ENTRYPOINT");
  EXPECT_EQ(runtime_.count("create"), 1u);
}

TEST_F(SparesTest, ASpareThatEndedIsReplacedAndNeverHandedOut) {
  make();
  ASSERT_TRUE(prepared(2));
  std::string spare;
  for (const auto& call : runtime_.calls)
    if (call.starts_with("prepare ")) spare = call.substr(8);
  runtime_.end(*SandboxId::parse(spare), runtime::EndCause::signalled, 9);
  ASSERT_TRUE(prepared(3));
  for (int i = 0; i < 2; ++i) EXPECT_NE(make().id.text(), spare);
  EXPECT_EQ(runtime_.count("claim"), 2u);
}

TEST_F(SparesTest, TheEndOfTheServiceLeavesNoSpare) {
  make();
  ASSERT_TRUE(prepared(2));
  stop_service();
  EXPECT_EQ(runtime_.sandboxes.size(), 1u);  // the one that is somebody's
}

TEST_F(SparesTest, WhenTheyAreSwitchedOffNothingIsMadeAheadOfTime) {
  options_.spares.most = 0;
  ASSERT_TRUE(restart());
  make();
  make();
  settle();
  EXPECT_EQ(runtime_.count("prepare"), 0u);
  EXPECT_EQ(runtime_.count("create"), 2u);
}

TEST_F(SparesTest, ACreateWithAVolumeASnapshotOrAPlatformIsMadeOnTheSpot) {
  make();
  ASSERT_TRUE(prepared(2));
  auto wanted = spec();
  wanted.platform = {"linux", "amd64"};
  ASSERT_TRUE(run(service_->create(wanted, kAlice)));
  EXPECT_EQ(runtime_.count("claim"), 0u);
  make();  // control
  EXPECT_EQ(runtime_.count("claim"), 1u);
}

TEST_F(SparesTest, AShapeNobodyAsksForGoes) {
  options_.spares.idle_seconds = 0;
  options_.spares.crowd = 100;  // one is made beside the create, before the shape counts as idle
  ASSERT_TRUE(restart());
  make();
  ASSERT_TRUE(until([&] { return runtime_.count("prepare") >= 1 && runtime_.sandboxes.size() == 1; }));
  EXPECT_TRUE(service_->spares().facts().empty());
}

TEST_F(SparesTest, OldOnesAreReplaced) {
  options_.spares.age_seconds = -1;  // every one is too old
  ASSERT_TRUE(restart());
  make();
  ASSERT_TRUE(until([&] { return service_->spares().count().expired >= 3; }));
  EXPECT_LE(runtime_.sandboxes.size(), 4u);
}

TEST_F(SparesTest, MemoryBoundsThem) {
  options_.spares.max_memory_bytes = 1 << 20;  // of one
  ASSERT_TRUE(restart());
  make();
  ASSERT_TRUE(prepared(1));
  settle();
  EXPECT_EQ(runtime_.count("prepare"), 1u);
}

TEST_F(SparesTest, ScarceMemoryMeansNone) {
  options_.spares.memory = [] { return std::uint64_t{4} << 20; };
  ASSERT_TRUE(restart());
  make();
  settle();
  EXPECT_EQ(runtime_.count("prepare"), 0u);
}

TEST_F(SparesTest, NewSettingsTakeApartWhatTheOldOnesMade) {
  make();
  ASSERT_TRUE(prepared(2));
  auto off = options_;
  off.spares.automatic = false;
  service_->set_options(off);
  ASSERT_TRUE(until([&] { return runtime_.sandboxes.size() == 1; }));
  make();
  settle();
  EXPECT_EQ(runtime_.count("prepare"), 2u);
}

TEST_F(SparesTest, DrainedByHandTheyComeBackWithTheNextMiss) {
  make();
  ASSERT_TRUE(prepared(2));
  EXPECT_EQ(service_->spares().drain_automatic(), 2u);
  ASSERT_TRUE(until([&] { return runtime_.sandboxes.size() == 1; }));
  make();
  ASSERT_TRUE(prepared(4));
}

TEST_F(SparesTest, AMakeThatFailsIsNotTriedAgainAndAgain) {
  for (int i = 0; i < 10; ++i) runtime_.fail_next("prepare", Error(Errc::exhausted, "no room"));
  make();
  ASSERT_TRUE(until([&] { return runtime_.count("prepare") >= 1; }));
  settle();
  EXPECT_LE(runtime_.count("prepare"), 2u);
  make();  // and creates go on
  EXPECT_EQ(runtime_.count("create"), 2u);
}

}  // namespace
}  // namespace osb::lifecycle
