#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

using runtime::EndCause;

class ReconcileTest : public ServiceFixture {
 protected:
  std::size_t lines_of(std::string_view action) const {
    std::size_t n = 0;
    for (const auto& line : audited()) n += line.starts_with(cat(action, " ")) ? 1 : 0;
    return n;
  }
};

TEST_F(ReconcileTest, WhatLivesIsAdoptedUnchanged) {
  std::vector<Sandbox> made;
  for (int i = 0; i < 50; ++i) made.push_back(make(i % 2 ? kAlice : kBob));
  ASSERT_TRUE(run(service_->pause(made[3].id, kAlice)));
  ASSERT_TRUE(restart());
  EXPECT_EQ(service_->list({}, 1, 200, kLocal).total, 50u);
  EXPECT_EQ(runtime_.sandboxes.size(), 50u);
  EXPECT_EQ(runtime_.count("destroy"), 0u);
  for (std::size_t i = 0; i < made.size(); ++i) {
    auto found = service_->get(made[i].id, kLocal);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->status.state, i == 3 ? State::paused : State::running);
    EXPECT_EQ(found->created_at, made[i].created_at);
    EXPECT_EQ(found->expires_at, made[i].expires_at);
    EXPECT_EQ(found->owner, made[i].owner);
    EXPECT_EQ(runtime_.sandboxes.at(made[i].id.text()).deadline_boot_nanos, made[i].deadline_boot_nanos);
  }
  EXPECT_TRUE(service_->image_in_use("host"));
  ASSERT_TRUE(run(service_->resume(made[3].id, kAlice)));
}

TEST_F(ReconcileTest, TheFrozenFlagOfTheRuntimeSaysWhatIsPaused) {
  auto frozen = make();
  auto thawed = make();
  ASSERT_TRUE(run(service_->pause(thawed.id, kAlice)));
  runtime_.sandboxes.at(frozen.id.text()).frozen = true;
  runtime_.sandboxes.at(thawed.id.text()).frozen = false;
  ASSERT_TRUE(restart());
  EXPECT_EQ(state(frozen.id), State::paused);
  EXPECT_EQ(state(thawed.id), State::running);
  EXPECT_EQ(store_.rows.at(frozen.id.text()).status.state, State::paused);
}

TEST_F(ReconcileTest, WhatIsGoneIsListedAsLostUntilDeleted) {
  auto made = make();
  auto ended = make();
  runtime_.end(ended.id, EndCause::exited, 0);
  runtime_.sandboxes.clear();
  ASSERT_TRUE(restart());
  EXPECT_EQ(state(made.id), State::failed);
  EXPECT_EQ(service_->get(made.id, kAlice)->status.reason, "SANDBOX_LOST");
  EXPECT_EQ(state(ended.id), State::terminated);
  EXPECT_EQ(lines_of("sandbox.lost"), 1u);
  EXPECT_EQ(service_->live(), 0u);
  ASSERT_TRUE(restart());
  EXPECT_EQ(lines_of("sandbox.lost"), 1u);
  EXPECT_TRUE(run(service_->destroy(made.id, kAlice)));
  EXPECT_EQ(runtime_.count("destroy"), 0u);
}

TEST_F(ReconcileTest, WhatNobodyKnowsIsDestroyed) {
  auto made = make();
  auto orphan = SandboxId::random();
  runtime_.sandboxes[orphan.text()] = {};
  ASSERT_TRUE(restart());
  EXPECT_FALSE(runtime_.sandboxes.contains(orphan.text()));
  EXPECT_TRUE(runtime_.sandboxes.contains(made.id.text()));
  EXPECT_EQ(lines_of("sandbox.orphan"), 1u);
  EXPECT_FALSE(exists(orphan));
}

TEST_F(ReconcileTest, WhatNobodyKnowsAndCannotBeDestroyedAtOnceIsTriedAgain) {
  runtime_.sandboxes[SandboxId::random().text()] = {};
  for (int i = 0; i < 2; ++i) runtime_.fail_next("destroy", Error(Errc::timeout, "the launcher did not answer"));
  ASSERT_TRUE(restart());
  EXPECT_TRUE(until([&] { return runtime_.sandboxes.empty(); }));
}

TEST_F(ReconcileTest, AnEndedRecordThatStillLivesIsDestroyedInTheRuntime) {
  auto made = make();
  auto inside = runtime_.sandboxes.at(made.id.text());
  runtime_.end(made.id, EndCause::unknown);
  runtime_.sandboxes[made.id.text()] = inside;
  ASSERT_TRUE(restart());
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_EQ(state(made.id), State::failed);
}

TEST_F(ReconcileTest, AnEndToldWhileStartingIsNotLost) {
  auto made = make();
  stop_service();
  make_service();
  runtime_.hold_answer("list");
  auto starting = begin(service_->start());
  ASSERT_TRUE(until([&] { return runtime_.waiting("answer list") == 1; }));
  runtime_.end(made.id, EndCause::exited, 0);
  runtime_.release("answer list");
  ASSERT_TRUE(until([&] { return starting.done(); }));
  ASSERT_TRUE(starting.value());
  EXPECT_EQ(state(made.id), State::terminated);
}

TEST_F(ReconcileTest, ARuntimeOrStoreThatDoesNotAnswerStopsTheStart) {
  make();
  runtime_.fail_next("list", Error(Errc::unavailable, "launcher"));
  auto started = restart();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind(), Errc::unavailable);
  EXPECT_EQ(runtime_.sandboxes.size(), 1u);
  EXPECT_EQ(runtime_.count("destroy"), 0u);
  EXPECT_EQ(store_.rows.size(), 1u);
}

TEST_F(ReconcileTest, ADeadlineThatPassedMeanwhileIsMetAtOnce) {
  auto made = make();
  store_.rows.at(made.id.text()).deadline_boot_nanos = static_cast<std::uint64_t>(boot_now_nanos() - 10'000'000'000);
  ASSERT_TRUE(restart());
  ASSERT_TRUE(until([&] { return !exists(made.id); }));
  EXPECT_TRUE(runtime_.sandboxes.empty());
}

TEST_F(ReconcileTest, AfterARebootTheWallTimeSaysWhatIsLeft) {
  auto lost = make();
  auto expired = make();
  store_.rows.at(expired.id.text()).expires_at = in_millis(-5000);
  runtime_.sandboxes.clear();
  options_.boot_id = "boot-2";
  ASSERT_TRUE(restart());
  auto found = service_->get(lost.id, kAlice);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->boot_id, "boot-2");
  EXPECT_NEAR(static_cast<double>(found->deadline_boot_nanos), static_cast<double>(boot_now_nanos()) + 6e11, 1e10);
  ASSERT_TRUE(until([&] { return !exists(expired.id); }));
  EXPECT_TRUE(exists(lost.id));
}

TEST_F(ReconcileTest, ARenewalCutShortIsMadeWholeAgain) {
  auto made = make();
  runtime_.sandboxes.at(made.id.text()).deadline_boot_nanos = 1;
  ASSERT_TRUE(restart());
  EXPECT_EQ(runtime_.sandboxes.at(made.id.text()).deadline_boot_nanos, made.deadline_boot_nanos);
}

TEST_F(ReconcileTest, StoppingWhileWorkIsUnderWayEnds) {
  runtime_.hold("create");
  auto creating = begin(service_->create(spec(), kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("create") == 1; }));
  run_void(service_->stop());
  ASSERT_TRUE(until([&] { return creating.done(); }));
  runtime_.release("create");
  service_.reset();
}

}  // namespace
}  // namespace osb::lifecycle
