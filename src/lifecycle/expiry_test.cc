#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

using Lines = std::vector<std::string>;
using runtime::EndCause;

class ExpiryTest : public ServiceFixture {
 protected:
  std::uint64_t deadline(const SandboxId& id) { return runtime_.sandboxes.at(id.text()).deadline_boot_nanos; }
};

template <class T>
void expect_refused(const Result<T>& result, Errc kind, std::string_view code = "DOCKER::INVALID_EXPIRATION") {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), kind) << result.error().what();
  EXPECT_EQ(result.error().code(), code) << result.error().what();
}

TEST_F(ExpiryTest, RenewMovesTheDeadlineOfRuntimeTableAndStore) {
  auto made = make();
  auto until_when = in_millis(7'200'000);
  auto renewed = run(service_->renew(made.id, until_when, kAlice));
  ASSERT_TRUE(renewed) << renewed.error().what();
  EXPECT_EQ(*renewed, until_when);
  EXPECT_EQ(service_->get(made.id, kAlice)->expires_at, until_when);
  EXPECT_EQ(store_.rows.at(made.id.text()).expires_at, until_when);
  EXPECT_EQ(deadline(made.id), service_->get(made.id, kAlice)->deadline_boot_nanos);
  EXPECT_NEAR(static_cast<double>(deadline(made.id)), static_cast<double>(boot_now_nanos()) + 7.2e12, 5e9);
  EXPECT_EQ(audited().back(), "sandbox.renew ok");
  // Shortening is allowed, and a paused sandbox can be renewed too.
  ASSERT_TRUE(run(service_->pause(made.id, kAlice)));
  EXPECT_TRUE(run(service_->renew(made.id, in_millis(120'000), kAlice)));
}

TEST_F(ExpiryTest, RenewRefusesWhatMakesNoSense) {
  auto made = make();
  expect_refused(run(service_->renew(made.id, in_millis(-1), kAlice)), Errc::invalid_argument);
  expect_refused(run(service_->renew(made.id, WallTime{0}, kAlice)), Errc::invalid_argument);
  expect_refused(run(service_->renew(made.id, *parse_rfc3339("9999-12-31T23:59:59Z"), kAlice)), Errc::invalid_argument);
  auto manual = make(kAlice, std::nullopt);
  expect_refused(run(service_->renew(manual.id, in_millis(60'000), kAlice)), Errc::conflict);
  EXPECT_EQ(runtime_.count("set_deadline"), 0u);
  EXPECT_EQ(service_->get(made.id, kAlice)->expires_at, made.expires_at);
}

TEST_F(ExpiryTest, RenewHoldsTheOperatorsCap) {
  options_.max_timeout_seconds = 600;
  ASSERT_TRUE(restart());
  auto made = make();
  EXPECT_TRUE(run(service_->renew(made.id, in_millis(600'000), kAlice)));
  expect_refused(run(service_->renew(made.id, in_millis(900'000), kAlice)), Errc::invalid_argument);
}

TEST_F(ExpiryTest, ARenewThatFailsChangesNothing) {
  auto made = make();
  auto before = deadline(made.id);
  runtime_.fail_next("set_deadline", Error(Errc::unavailable, "launcher"));
  EXPECT_FALSE(run(service_->renew(made.id, in_millis(7'200'000), kAlice)));
  store_.failing = Error(Errc::exhausted, "full");
  EXPECT_FALSE(run(service_->renew(made.id, in_millis(7'200'000), kAlice)));
  EXPECT_EQ(deadline(made.id), before);
  store_.failing.reset();
  audit_fails_ = true;
  EXPECT_FALSE(run(service_->renew(made.id, in_millis(7'200'000), kAlice)));
  EXPECT_EQ(deadline(made.id), before);
  EXPECT_EQ(service_->get(made.id, kAlice)->expires_at, made.expires_at);
  EXPECT_EQ(store_.rows.at(made.id.text()).expires_at, made.expires_at);
}

TEST_F(ExpiryTest, OfTwoRenewalsAtOnceTheLastOneAskedWins) {
  auto made = make();
  runtime_.hold("set_deadline");
  auto first = begin(service_->renew(made.id, in_millis(1'000'000), kAlice));
  auto later = in_millis(2'000'000);
  auto second = begin(service_->renew(made.id, later, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("set_deadline") == 2; }));
  runtime_.release("set_deadline");
  ASSERT_TRUE(until([&] { return first.done() && second.done(); }));
  EXPECT_EQ(service_->get(made.id, kAlice)->expires_at, later);
  EXPECT_EQ(deadline(made.id), service_->get(made.id, kAlice)->deadline_boot_nanos);
}

TEST_F(ExpiryTest, ASandboxThatEndsDuringARenewIsNotFoundOrEnded) {
  auto made = make();
  runtime_.hold("set_deadline");
  auto renewing = begin(service_->renew(made.id, in_millis(1'000'000), kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("set_deadline") == 1; }));
  runtime_.end(made.id, EndCause::expired);
  runtime_.release("set_deadline");
  ASSERT_TRUE(until([&] { return renewing.done(); }));
  expect_refused(renewing.value(), Errc::not_found, "DOCKER::SANDBOX_NOT_FOUND");
  EXPECT_TRUE(store_.rows.empty());
}

TEST_F(ExpiryTest, WhenTheRuntimeEndsItAtItsDeadlineItIsGoneEverywhere) {
  auto made = make();
  runtime_.end(made.id, EndCause::expired);
  EXPECT_FALSE(exists(made.id));
  EXPECT_TRUE(store_.rows.empty());
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok", "sandbox.expire ok"}));
}

TEST_F(ExpiryTest, WhenTheRuntimeDoesNotEndItTheServiceDoesWithinASecond) {
  auto made = make();
  auto start = boot_now_nanos();
  ASSERT_TRUE(run(service_->renew(made.id, in_millis(100), kAlice)));
  ASSERT_TRUE(until([&] { return !exists(made.id); }));
  EXPECT_LT(boot_now_nanos() - start, 3'000'000'000);
  EXPECT_GE(boot_now_nanos() - start, 600'000'000);
  ASSERT_TRUE(until([&] { return runtime_.sandboxes.empty() && store_.rows.empty(); }));
  EXPECT_EQ(audited().back(), "sandbox.expire ok");
  EXPECT_EQ(lines_.size(), 3u);
}

TEST_F(ExpiryTest, AnExpiryThatTheRuntimeRefusesIsTriedAgainAndStaysVisible) {
  auto made = make();
  runtime_.fail_next("destroy", Error(Errc::unavailable, "launcher is being replaced"));
  ASSERT_TRUE(run(service_->renew(made.id, in_millis(10), kAlice)));
  ASSERT_TRUE(until([&] { return runtime_.count("destroy") == 1; }));
  settle();
  EXPECT_EQ(state(made.id), State::running);
  // The runtime comes back and ends it itself.
  runtime_.end(made.id, EndCause::expired);
  EXPECT_FALSE(exists(made.id));
  EXPECT_EQ(audited().back(), "sandbox.expire ok");
}

TEST_F(ExpiryTest, AnEndedRecordGoesAtItsExpiry) {
  auto made = make();
  ASSERT_TRUE(run(service_->renew(made.id, in_millis(150), kAlice)));
  runtime_.end(made.id, EndCause::exited, 0);
  EXPECT_EQ(state(made.id), State::terminated);
  ASSERT_TRUE(until([&] { return !exists(made.id); }));
  EXPECT_TRUE(store_.rows.empty());
  EXPECT_EQ(runtime_.count("destroy"), 0u);
}

TEST_F(ExpiryTest, JumpsOfTheWallClockMoveNoDeadline) {
  auto made = make();
  ASSERT_TRUE(run(service_->renew(made.id, in_millis(300), kAlice)));
  auto lasting = make(kAlice, 600);
  g_wall_offset_micros = 10ll * 365 * 86400 * 1'000'000;
  ASSERT_TRUE(until([&] { return !exists(made.id); }));
  EXPECT_TRUE(exists(lasting.id));
  auto third = make();
  g_wall_offset_micros = -86400ll * 1'000'000;
  ASSERT_TRUE(run(service_->renew(third.id, in_millis(100), kAlice)));
  ASSERT_TRUE(until([&] { return !exists(third.id); }));
  EXPECT_TRUE(exists(lasting.id));
}

TEST_F(ExpiryTest, NothingIsDueAndNothingWakesUp) {
  make(kAlice, std::nullopt);
  make(kAlice, 600);
  settle();
  io_.restart();
  // Only outstanding work keeps run_for waiting; no handler may become ready meanwhile.
  EXPECT_EQ(io_.run_for(std::chrono::milliseconds(300)), 0u);
}

TEST_F(ExpiryTest, ADeleteDuringAnExpiryFindsNothing) {
  auto made = make();
  runtime_.hold("destroy");
  ASSERT_TRUE(run(service_->renew(made.id, in_millis(10), kAlice)));
  ASSERT_TRUE(until([&] { return runtime_.waiting("destroy") == 1; }));
  EXPECT_FALSE(exists(made.id));
  expect_refused(run(service_->destroy(made.id, kAlice)), Errc::not_found, "DOCKER::SANDBOX_NOT_FOUND");
  runtime_.release("destroy");
  ASSERT_TRUE(until([&] { return store_.rows.empty(); }));
  settle();
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok", "sandbox.renew ok", "sandbox.expire ok"}));
}

TEST_F(ExpiryTest, AnExpiryDuringADeleteIsNoSecondEvent) {
  auto made = make();
  runtime_.hold("destroy");
  auto deleting = begin(service_->destroy(made.id, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("destroy") == 1; }));
  runtime_.end(made.id, EndCause::expired);
  runtime_.release("destroy");
  ASSERT_TRUE(until([&] { return deleting.done(); }));
  EXPECT_TRUE(deleting.value());
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok", "sandbox.delete ok"}));
}

}  // namespace
}  // namespace osb::lifecycle
