#include "lifecycle/outcome.h"
#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

using Lines = std::vector<std::string>;
using runtime::EndCause;

class ServiceTest : public ServiceFixture {};

template <class T>
void expect_error(const Result<T>& result, Errc kind, std::string_view code) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), kind) << result.error().what();
  EXPECT_EQ(result.error().code(), code) << result.error().what();
}

constexpr std::string_view kUnknown = "DOCKER::SANDBOX_NOT_FOUND";

// ---- reading -------------------------------------------------------------------------------------------------------

TEST_F(ServiceTest, SandboxesOfOthersReadAsNotFound) {
  auto made = make(kAlice);
  EXPECT_TRUE(service_->get(made.id, kAlice));
  EXPECT_TRUE(service_->get(made.id, kLocal));
  EXPECT_TRUE(service_->find(made.id));
  expect_error(service_->get(made.id, kBob), Errc::not_found, kUnknown);
  expect_error(run(service_->destroy(made.id, kBob)), Errc::not_found, kUnknown);
  expect_error(run(service_->pause(made.id, kBob)), Errc::not_found, kUnknown);
  expect_error(run(service_->resume(made.id, kBob)), Errc::not_found, kUnknown);
  expect_error(run(service_->renew(made.id, in_millis(60'000), kBob)), Errc::not_found, kUnknown);
  expect_error(service_->patch_metadata(made.id, {{"a", "b"}}, kBob), Errc::not_found, kUnknown);
  EXPECT_EQ(service_->list({}, 1, 20, kBob).total, 0u);
  EXPECT_EQ(service_->list({}, 1, 20, kAlice).total, 1u);
  EXPECT_EQ(state(made.id), State::running);
}

TEST_F(ServiceTest, ListIsNewestFirstInPagesThatDoNotOverlap) {
  std::vector<std::string> made;
  for (int i = 0; i < 7; ++i) {
    g_wall_offset_micros = i * 1'000'000;
    made.push_back(make().id.text());
  }
  std::vector<std::string> listed;
  for (std::size_t page = 1; page <= 4; ++page) {
    auto listing = service_->list({}, page, 2, kAlice);
    EXPECT_EQ(listing.total, 7u);
    for (const auto& item : listing.items) listed.push_back(item.id.text());
  }
  std::reverse(made.begin(), made.end());
  EXPECT_EQ(listed, made);
  EXPECT_TRUE(service_->list({}, 5, 2, kAlice).items.empty());
  EXPECT_TRUE(service_->list({}, static_cast<std::size_t>(-1), 200, kAlice).items.empty());
}

TEST_F(ServiceTest, ListFiltersByStateAndMetadata) {
  auto first = make();
  auto second = make();
  ASSERT_TRUE(run(service_->pause(second.id, kAlice)));
  ASSERT_TRUE(service_->patch_metadata(first.id, {{"team", "t1"}, {"env", "prod"}}, kAlice));
  auto count = [&](std::vector<State> states, StringMap metadata) {
    return service_->list({std::move(states), std::move(metadata), ""}, 1, 20, kAlice).total;
  };
  EXPECT_EQ(count({State::paused}, {}), 1u);
  EXPECT_EQ(count({State::paused, State::running}, {}), 2u);
  EXPECT_EQ(count({State::failed}, {}), 0u);
  EXPECT_EQ(count({}, {{"tag", "demo"}}), 2u);
  EXPECT_EQ(count({}, {{"team", "t1"}, {"env", "prod"}}), 1u);
  EXPECT_EQ(count({}, {{"team", "t1"}, {"env", "dev"}}), 0u);
  EXPECT_EQ(count({State::paused}, {{"team", "t1"}}), 0u);
}

// ---- delete ----------------------------------------------------------------------------------------------------------

TEST_F(ServiceTest, ADeletedSandboxIsGoneEverywhereAtOnce) {
  auto made = make();
  ASSERT_TRUE(run(service_->destroy(made.id, kAlice)));
  expect_error(service_->get(made.id, kAlice), Errc::not_found, kUnknown);
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_TRUE(store_.rows.empty());
  EXPECT_EQ(service_->list({}, 1, 20, kLocal).total, 0u);
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok", "sandbox.delete ok"}));
  expect_error(run(service_->destroy(made.id, kAlice)), Errc::not_found, kUnknown);
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(ServiceTest, WhileADeleteIsUnderWayTheSandboxIsInvisible) {
  auto made = make();
  runtime_.hold("destroy");
  auto first = begin(service_->destroy(made.id, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("destroy") == 1; }));
  EXPECT_FALSE(exists(made.id));
  EXPECT_FALSE(service_->find(made.id));
  EXPECT_EQ(service_->list({}, 1, 20, kLocal).total, 0u);
  expect_error(run(service_->destroy(made.id, kAlice)), Errc::not_found, kUnknown);
  expect_error(run(service_->pause(made.id, kAlice)), Errc::not_found, kUnknown);
  runtime_.release("destroy");
  ASSERT_TRUE(until([&] { return first.done(); }));
  EXPECT_TRUE(first.value());
  EXPECT_EQ(runtime_.count("destroy"), 1u);
}

TEST_F(ServiceTest, ADeleteThatFailsIsToldShownAndTriedUntilTheSandboxHasEnded) {
  auto made = make();
  for (int i = 0; i < 3; ++i) runtime_.fail_next("destroy", Error(Errc::timeout, "the launcher did not answer"));
  expect_error(run(service_->destroy(made.id, kAlice)), Errc::timeout, "DOCKER::SANDBOX_DELETE_FAILED");
  EXPECT_EQ(state(made.id), State::stopping);
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok", "sandbox.delete ok", "sandbox.delete DOCKER::SANDBOX_DELETE_FAILED"}));
  EXPECT_TRUE(until([&] { return !exists(made.id); }));
  EXPECT_EQ(runtime_.count("destroy"), 4u);
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_TRUE(store_.rows.empty());
}

TEST_F(ServiceTest, ADeleteThatFailedMayBeAskedForAgain) {
  auto made = make();
  runtime_.fail_next("destroy", Error(Errc::unavailable, "launcher is gone"));
  expect_error(run(service_->destroy(made.id, kAlice)), Errc::unavailable, "DOCKER::SANDBOX_DELETE_FAILED");
  EXPECT_TRUE(run(service_->destroy(made.id, kAlice)));
  EXPECT_FALSE(exists(made.id));
  EXPECT_TRUE(store_.rows.empty());
}

// The answer was lost, not the request.
TEST_F(ServiceTest, ADeleteThatFailedEndsWithTheNewsOfTheEnd) {
  auto made = make();
  runtime_.fail_next("destroy", Error(Errc::timeout, "the launcher did not answer"));
  runtime_.hold("destroy");
  auto deleting = begin(service_->destroy(made.id, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("destroy") == 1; }));
  runtime_.release_one("destroy");
  ASSERT_TRUE(until([&] { return deleting.done(); }));
  EXPECT_EQ(state(made.id), State::stopping);
  runtime_.end(made.id, runtime::EndCause::destroyed);
  EXPECT_FALSE(exists(made.id)) << "no record of an end that was asked for";
  runtime_.release("destroy");
}

TEST_F(ServiceTest, ADeleteThatFailedIsDoneByTheNextDaemon) {
  auto made = make();
  runtime_.fail_next("destroy", Error(Errc::timeout, "the launcher did not answer"));
  expect_error(run(service_->destroy(made.id, kAlice)), Errc::timeout, "DOCKER::SANDBOX_DELETE_FAILED");
  ASSERT_TRUE(restart());
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_FALSE(exists(made.id));
}

TEST_F(ServiceTest, WhatACreateCouldNotKeepIsEndedUntilItIsGone) {
  audit_fails_ = true;
  for (int i = 0; i < 2; ++i) runtime_.fail_next("destroy", Error(Errc::timeout, "the launcher did not answer"));
  EXPECT_FALSE(run(service_->create(spec(), kAlice)));
  EXPECT_TRUE(until([&] { return runtime_.sandboxes.empty(); }));
  EXPECT_EQ(runtime_.count("destroy"), 3u);
  audit_fails_ = false;
}

TEST_F(ServiceTest, ADeleteSucceedsWhenTheRuntimeNoLongerKnowsTheSandbox) {
  auto made = make();
  runtime_.sandboxes.clear();
  EXPECT_TRUE(run(service_->destroy(made.id, kAlice)));
  EXPECT_TRUE(store_.rows.empty());
}

TEST_F(ServiceTest, ADeleteThatCannotBeRecordedDoesNotHappen) {
  auto made = make();
  audit_fails_ = true;
  expect_error(run(service_->destroy(made.id, kAlice)), Errc::unavailable, "");
  EXPECT_EQ(state(made.id), State::running);
  EXPECT_EQ(runtime_.count("destroy"), 0u);
  audit_fails_ = false;
  EXPECT_TRUE(run(service_->destroy(made.id, kAlice)));
}

TEST_F(ServiceTest, ADeleteWithAFailingStoreIsFinishedLater) {
  auto made = make();
  store_.failing = Error(Errc::exhausted, "disk full");
  EXPECT_TRUE(run(service_->destroy(made.id, kAlice)));
  EXPECT_FALSE(exists(made.id));
  EXPECT_EQ(store_.rows.size(), 1u);
  store_.failing.reset();
  EXPECT_TRUE(until([&] { return store_.rows.empty(); }));
}

TEST_F(ServiceTest, TheEndOfADeletedSandboxIsNoSecondEvent) {
  auto made = make();
  runtime_.hold_answer("destroy");  // the end is told before the destroy answers
  auto deleting = begin(service_->destroy(made.id, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("answer destroy") == 1; }));
  EXPECT_TRUE(store_.rows.empty());
  runtime_.release("answer destroy");
  ASSERT_TRUE(until([&] { return deleting.done(); }));
  EXPECT_TRUE(deleting.value());
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok", "sandbox.delete ok"}));
}

// ---- pause and resume ------------------------------------------------------------------------------------------------

TEST_F(ServiceTest, PauseAndResumeAreVisibleWhenTheyAnswer) {
  auto made = make();
  ASSERT_TRUE(run(service_->pause(made.id, kAlice)));
  EXPECT_EQ(state(made.id), State::paused);
  EXPECT_EQ(service_->get(made.id, kAlice)->status.reason, "CONTAINER_PAUSED");
  EXPECT_TRUE(runtime_.sandboxes.at(made.id.text()).frozen);
  EXPECT_EQ(store_.rows.at(made.id.text()).status.state, State::paused);
  expect_error(run(service_->pause(made.id, kAlice)), Errc::conflict, "DOCKER::SANDBOX_NOT_RUNNING");
  ASSERT_TRUE(run(service_->resume(made.id, kAlice)));
  EXPECT_EQ(state(made.id), State::running);
  EXPECT_FALSE(runtime_.sandboxes.at(made.id.text()).frozen);
  expect_error(run(service_->resume(made.id, kAlice)), Errc::conflict, "DOCKER::SANDBOX_NOT_PAUSED");
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok", "sandbox.pause ok", "sandbox.resume ok"}));
  EXPECT_GE(service_->get(made.id, kAlice)->status.changed_at, made.status.changed_at);
}

TEST_F(ServiceTest, ASecondPauseAtTheSameTimeIsAConflict) {
  auto made = make();
  runtime_.hold("pause");
  auto first = begin(service_->pause(made.id, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("pause") == 1; }));
  EXPECT_EQ(state(made.id), State::pausing);
  expect_error(run(service_->pause(made.id, kAlice)), Errc::conflict, "DOCKER::SANDBOX_NOT_RUNNING");
  expect_error(run(service_->resume(made.id, kAlice)), Errc::conflict, "DOCKER::SANDBOX_NOT_PAUSED");
  runtime_.release("pause");
  ASSERT_TRUE(until([&] { return first.done(); }));
  EXPECT_TRUE(first.value());
  EXPECT_EQ(runtime_.count("pause"), 1u);
}

TEST_F(ServiceTest, APauseThatFailsLeavesTheSandboxRunning) {
  auto made = make();
  runtime_.fail_next("pause", Error(Errc::timeout, "not all processes froze"));
  expect_error(run(service_->pause(made.id, kAlice)), Errc::timeout, "DOCKER::SANDBOX_PAUSE_FAILED");
  EXPECT_EQ(state(made.id), State::running);
  EXPECT_EQ(audited().back(), "sandbox.pause DOCKER::SANDBOX_PAUSE_FAILED");
  ASSERT_TRUE(run(service_->pause(made.id, kAlice)));
  runtime_.fail_next("resume", Error(Errc::internal, "thaw"));
  expect_error(run(service_->resume(made.id, kAlice)), Errc::internal, "DOCKER::SANDBOX_RESUME_FAILED");
  EXPECT_EQ(state(made.id), State::paused);
}

TEST_F(ServiceTest, APauseThatCannotBeRecordedIsTakenBack) {
  auto made = make();
  audit_fails_ = true;
  expect_error(run(service_->pause(made.id, kAlice)), Errc::unavailable, "");
  EXPECT_EQ(state(made.id), State::running);
  EXPECT_FALSE(runtime_.sandboxes.at(made.id.text()).frozen);
  audit_fails_ = false;
  ASSERT_TRUE(run(service_->pause(made.id, kAlice)));
  audit_fails_ = true;
  expect_error(run(service_->resume(made.id, kAlice)), Errc::unavailable, "");
  EXPECT_EQ(state(made.id), State::paused);
  EXPECT_TRUE(runtime_.sandboxes.at(made.id.text()).frozen);
}

TEST_F(ServiceTest, ARuntimeWithoutPauseSaysSo) {
  auto made = make();
  runtime_.set_pause_supported(false);
  expect_error(run(service_->pause(made.id, kAlice)), Errc::unsupported, "SANDBOX::API_NOT_SUPPORTED");
}

TEST_F(ServiceTest, ASandboxThatEndsWhilePausingIsEndedAndThePauseAConflict) {
  for (int status : {0, 7}) {
    auto made = make();
    runtime_.hold("pause");
    auto pausing = begin(service_->pause(made.id, kAlice));
    ASSERT_TRUE(until([&] { return runtime_.waiting("pause") == 1; }));
    runtime_.end(made.id, EndCause::exited, status);
    runtime_.release("pause");
    ASSERT_TRUE(until([&] { return pausing.done(); }));
    expect_error(pausing.value(), Errc::conflict, "DOCKER::SANDBOX_NOT_RUNNING");
    EXPECT_EQ(state(made.id), status == 0 ? State::terminated : State::failed);
    EXPECT_EQ(store_.rows.at(made.id.text()).status.state, state(made.id));
  }
}

TEST_F(ServiceTest, ASandboxThatExpiresWhilePausingIsGone) {
  auto made = make();
  runtime_.hold("pause");
  auto pausing = begin(service_->pause(made.id, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("pause") == 1; }));
  runtime_.end(made.id, EndCause::expired);
  EXPECT_FALSE(exists(made.id));
  runtime_.release("pause");
  ASSERT_TRUE(until([&] { return pausing.done(); }));
  expect_error(pausing.value(), Errc::not_found, kUnknown);
  EXPECT_TRUE(store_.rows.empty());
}

TEST_F(ServiceTest, ADeleteDuringAPauseWins) {
  auto made = make();
  runtime_.hold("pause");
  auto pausing = begin(service_->pause(made.id, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("pause") == 1; }));
  ASSERT_TRUE(run(service_->destroy(made.id, kAlice)));
  runtime_.release("pause");
  ASSERT_TRUE(until([&] { return pausing.done(); }));
  expect_error(pausing.value(), Errc::not_found, kUnknown);
  EXPECT_TRUE(store_.rows.empty());
  EXPECT_FALSE(exists(made.id));
}

TEST_F(ServiceTest, ADeleteThatFailsAfterAPauseIsTriedAgain) {
  auto made = make();
  runtime_.hold("pause");
  auto pausing = begin(service_->pause(made.id, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("pause") == 1; }));
  runtime_.hold("destroy");
  runtime_.fail_next("destroy", Error(Errc::unavailable, "busy"));
  auto deleting = begin(service_->destroy(made.id, kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("destroy") == 1; }));
  runtime_.release("pause");
  ASSERT_TRUE(until([&] { return pausing.done(); }));
  EXPECT_FALSE(exists(made.id));
  runtime_.release("destroy");
  ASSERT_TRUE(until([&] { return deleting.done(); }));
  EXPECT_FALSE(deleting.value());
  EXPECT_EQ(state(made.id), State::stopping);
  EXPECT_TRUE(until([&] { return !exists(made.id); }));
}

// ---- ends ---------------------------------------------------------------------------------------------------------------

TEST_F(ServiceTest, EachEndReadsAsWhatItWas) {
  struct Row {
    EndCause cause;
    int status;
    State state;
    std::string_view reason, words;
  };
  const Row rows[] = {
      {EndCause::exited, 0, State::terminated, "CONTAINER_EXITED", "exit code 0"},
      {EndCause::exited, 3, State::failed, "CONTAINER_EXITED_ERROR", "exit code 3"},
      {EndCause::signalled, 9, State::failed, "CONTAINER_EXITED_ERROR", "signal 9 (exit code 137)"},
      {EndCause::out_of_memory, 9, State::failed, "OOMKilled", "512 MiB"},
      {EndCause::unknown, 0, State::failed, "CONTAINER_STATE_UNKNOWN", "not known"},
      {EndCause::destroyed, 0, State::failed, "SANDBOX_LOST", "outside"},
  };
  for (const auto& row : rows) {
    auto made = make();
    runtime_.end(made.id, row.cause, row.status);
    auto status = service_->get(made.id, kAlice)->status;
    EXPECT_EQ(status.state, row.state);
    EXPECT_EQ(status.reason, row.reason);
    EXPECT_NE(status.message.find(row.words), std::string::npos) << status.message;
    EXPECT_EQ(store_.rows.at(made.id.text()).status.reason, row.reason);
    EXPECT_EQ(audited().back(), "sandbox.end ok");
    EXPECT_EQ(last_audit().at("detail").at("cause").as_string(), name_of(row.cause));
  }
  EXPECT_EQ(service_->live(), 0u);
  EXPECT_EQ(service_->list({}, 1, 20, kAlice).total, 6u);
}

TEST_F(ServiceTest, AnEndedSandboxCanBeReadPatchedAndDeletedButNothingElse) {
  auto made = make();
  runtime_.end(made.id, EndCause::exited, 1);
  expect_error(run(service_->pause(made.id, kAlice)), Errc::conflict, "DOCKER::SANDBOX_NOT_RUNNING");
  expect_error(run(service_->renew(made.id, in_millis(900'000), kAlice)), Errc::conflict, "DOCKER::INVALID_EXPIRATION");
  EXPECT_TRUE(service_->patch_metadata(made.id, {{"seen", "yes"}}, kAlice));
  EXPECT_FALSE(service_->image_in_use("host"));
  EXPECT_TRUE(run(service_->destroy(made.id, kAlice)));
  EXPECT_EQ(runtime_.count("destroy"), 0u);
  EXPECT_TRUE(store_.rows.empty());
}

TEST_F(ServiceTest, ASecondEndOfTheSameSandboxChangesNothing) {
  auto made = make();
  runtime_.end(made.id, EndCause::exited, 1);
  auto lines = lines_.size();
  runtime_.end(made.id, EndCause::unknown);
  runtime_.end(SandboxId::random(), EndCause::exited);
  EXPECT_EQ(service_->get(made.id, kAlice)->status.reason, "CONTAINER_EXITED_ERROR");
  EXPECT_EQ(lines_.size(), lines);
}

TEST_F(ServiceTest, EndedRecordsAreBoundedAndTheOldestGoFirst) {
  options_.max_finished = 3;
  ASSERT_TRUE(restart());
  std::vector<SandboxId> made;
  for (int i = 0; i < 5; ++i) {
    g_wall_offset_micros = i * 1'000'000;
    made.push_back(make(kAlice, std::nullopt).id);
    runtime_.end(made.back(), EndCause::exited, 0);
  }
  EXPECT_FALSE(exists(made[0]));
  EXPECT_FALSE(exists(made[1]));
  for (std::size_t i = 2; i < 5; ++i) EXPECT_TRUE(exists(made[i]));
  EXPECT_EQ(store_.rows.size(), 3u);
}

TEST_F(ServiceTest, AnEndIsAppliedAlthoughStoreAndAuditLogFail) {
  auto made = make();
  store_.failing = Error(Errc::exhausted, "full");
  audit_fails_ = true;
  runtime_.end(made.id, EndCause::exited, 0);
  EXPECT_EQ(state(made.id), State::terminated);
  EXPECT_EQ(store_.rows.at(made.id.text()).status.state, State::running);
  store_.failing.reset();
  EXPECT_TRUE(until([&] { return store_.rows.at(made.id.text()).status.state == State::terminated; }));
}

// ---- metadata -----------------------------------------------------------------------------------------------------------

TEST_F(ServiceTest, APatchSetsRemovesAndKeeps) {
  auto made = make();
  auto patched = service_->patch_metadata(made.id, {{"tag", std::nullopt}, {"team", "t1"}, {"gone", std::nullopt}}, kAlice);
  ASSERT_TRUE(patched);
  EXPECT_EQ(patched->spec.metadata, (StringMap{{"team", "t1"}}));
  EXPECT_EQ(store_.rows.at(made.id.text()).spec.metadata, (StringMap{{"team", "t1"}}));
  EXPECT_EQ(patched->created_at, made.created_at);
  EXPECT_EQ(audited().back(), "sandbox.metadata ok");
}

TEST_F(ServiceTest, APatchThatCannotBeKeptChangesNothing) {
  auto made = make();
  store_.failing = Error(Errc::exhausted, "full");
  expect_error(service_->patch_metadata(made.id, {{"a", "1"}}, kAlice), Errc::exhausted, "");
  store_.failing.reset();
  audit_fails_ = true;
  expect_error(service_->patch_metadata(made.id, {{"a", "1"}}, kAlice), Errc::unavailable, "");
  EXPECT_EQ(service_->get(made.id, kAlice)->spec.metadata, made.spec.metadata);
  EXPECT_EQ(store_.rows.at(made.id.text()).spec.metadata, made.spec.metadata);
  std::map<std::string, std::optional<std::string>> many;
  for (int i = 0; i < 300; ++i) many[cat("k", i)] = "v";
  expect_error(service_->patch_metadata(made.id, many, kAlice), Errc::invalid_argument, "INVALID_METADATA_LABEL");
}

}  // namespace
}  // namespace osb::lifecycle
