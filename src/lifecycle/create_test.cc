#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

using Lines = std::vector<std::string>;

class CreateTest : public ServiceFixture {};

TEST_F(CreateTest, MakesStoresAndRecordsOnce) {
  auto before = turned_wall_clock();
  auto boot = boot_now_nanos();
  auto made = make();
  EXPECT_EQ(made.status.state, State::running);
  EXPECT_EQ(made.status.reason, "CONTAINER_RUNNING");
  EXPECT_EQ(made.owner, "alice");
  EXPECT_GE(made.created_at, before);
  EXPECT_EQ(made.expires_at->micros, made.created_at.micros + 600'000'000);
  EXPECT_EQ(made.status.changed_at, made.created_at);
  EXPECT_EQ(store_.puts, 1u);
  EXPECT_EQ(store_.rows.at(made.id.text()).status.state, State::running);
  const auto& inside = runtime_.sandboxes.at(made.id.text());
  EXPECT_EQ(inside.deadline_boot_nanos, made.deadline_boot_nanos);
  EXPECT_NEAR(static_cast<double>(inside.deadline_boot_nanos), static_cast<double>(boot + 600'000'000'000), 5e9);
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok"}));
  EXPECT_EQ(last_audit().at("actor"), "alice");
  EXPECT_EQ(last_audit().at("sandbox").as_string(), made.id.text());
  EXPECT_EQ(last_audit().at("detail").at("image"), "host");
  EXPECT_EQ(service_->live(), 1u);
}

TEST_F(CreateTest, WithoutTimeoutNeverExpires) {
  auto made = make(kAlice, std::nullopt);
  EXPECT_EQ(made.expires_at, std::nullopt);
  EXPECT_EQ(runtime_.sandboxes.at(made.id.text()).deadline_boot_nanos, 0u);
}

TEST_F(CreateTest, AnUnknownImageIsNotFoundBeforeAnythingIsMade) {
  auto wanted = spec();
  wanted.image = "python:3.11-slim";
  auto made = run(service_->create(wanted, kAlice));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), Errc::not_found);
  EXPECT_EQ(made.error().code(), "SANDBOX::IMAGE_NOT_FOUND");
  EXPECT_FALSE(made.error().hint().empty());
  EXPECT_EQ(runtime_.count("create"), 0u);
  EXPECT_EQ(audited(), (Lines{"sandbox.create SANDBOX::IMAGE_NOT_FOUND"}));
}

TEST_F(CreateTest, AnAliasIsResolvedForTheRuntimeAndKeptInTheRecord) {
  options_.image_aliases = {{"opensandbox/code-interpreter:latest", "host"}};
  ASSERT_TRUE(restart());
  auto wanted = spec();
  wanted.image = "opensandbox/code-interpreter:latest";
  auto made = run(service_->create(wanted, kAlice));
  ASSERT_TRUE(made) << made.error().what();
  EXPECT_EQ(made->spec.image, "opensandbox/code-interpreter:latest");
  EXPECT_EQ(runtime_.sandboxes.at(made->id.text()).spec.image, "host");
  EXPECT_TRUE(service_->image_in_use("host"));
}

TEST_F(CreateTest, TheOperatorsCapsHold) {
  options_.max_timeout_seconds = 600;
  options_.allow_root_mode = false;
  ASSERT_TRUE(restart());
  EXPECT_TRUE(run(service_->create(spec(600), kAlice)));
  auto refused = [&](SandboxSpec wanted, std::string_view field) {
    auto made = run(service_->create(std::move(wanted), kAlice));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), "SANDBOX::INVALID_PARAMETER");
    EXPECT_EQ(made.error().field(), field);
  };
  refused(spec(601), "timeout");
  refused(spec(std::nullopt), "timeout");
  refused(spec(0), "timeout");
  refused(spec(-1), "timeout");
  auto root = spec();
  root.policy.user = UserMode::root;
  refused(root, "extensions.opensandbox.mode");
  auto permissive = spec();
  permissive.policy.syscalls = SyscallProfile::permissive;
  refused(permissive, "extensions.opensandbox.syscalls");
  options_.allow_root_mode = options_.allow_permissive_syscalls = true;
  ASSERT_TRUE(restart());
  EXPECT_TRUE(run(service_->create(root, kAlice)));
  EXPECT_TRUE(run(service_->create(permissive, kAlice)));
}

TEST_F(CreateTest, ChangedOptionsCountForTheNextCreate) {
  auto first = make();
  Options stricter;
  stricter.max_sandboxes = 1;
  service_->set_options(stricter);
  EXPECT_FALSE(run(service_->create(spec(), kAlice)));
  EXPECT_TRUE(exists(first.id));
  service_->set_options({});
  EXPECT_EQ(make().boot_id, "boot-1");
}

TEST_F(CreateTest, CapacityCountsWhatLivesAndWhatIsBeingMade) {
  options_.max_sandboxes = 2;
  ASSERT_TRUE(restart());
  auto first = make();
  runtime_.hold("create");
  auto second = begin(service_->create(spec(), kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("create") == 1; }));
  auto third = run(service_->create(spec(), kAlice));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind(), Errc::unavailable);
  EXPECT_EQ(third.error().code(), "SANDBOX::LIMIT_REACHED");
  runtime_.release("create");
  ASSERT_TRUE(until([&] { return second.done(); }));
  EXPECT_TRUE(second.value());
  // What has ended takes no room.
  runtime_.end(first.id, runtime::EndCause::exited, 0);
  EXPECT_TRUE(run(service_->create(spec(), kAlice)));
  EXPECT_FALSE(run(service_->create(spec(), kAlice)));
}

TEST_F(CreateTest, AFailureOfTheRuntimeLeavesNothing) {
  runtime_.fail_next("create", Error(Errc::unavailable, "clone: Resource temporarily unavailable"));
  auto made = run(service_->create(spec(), kAlice));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), Errc::unavailable);
  EXPECT_EQ(made.error().code(), "DOCKER::SANDBOX_START_FAILED");
  EXPECT_TRUE(store_.rows.empty());
  EXPECT_EQ(service_->live(), 0u);
  EXPECT_EQ(service_->list({}, 1, 20, kLocal).total, 0u);
  EXPECT_EQ(audited(), (Lines{"sandbox.create DOCKER::SANDBOX_START_FAILED"}));
}

TEST_F(CreateTest, AFailureOfTheStoreTakesTheSandboxApart) {
  store_.failing = Error(Errc::exhausted, "database or disk is full");
  auto made = run(service_->create(spec(), kAlice));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), Errc::unavailable);
  EXPECT_EQ(made.error().code(), "SANDBOX::HOST_EXHAUSTED");
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_EQ(runtime_.count("destroy"), 1u);
  EXPECT_EQ(service_->live(), 0u);
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_NE(last_audit().at("outcome"), "ok");
  store_.failing.reset();
  EXPECT_TRUE(run(service_->create(spec(), kAlice)));
}

TEST_F(CreateTest, AFailureOfTheAuditLogTakesTheSandboxApart) {
  audit_fails_ = true;
  auto made = run(service_->create(spec(), kAlice));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), Errc::unavailable);
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_TRUE(store_.rows.empty());
  EXPECT_EQ(service_->live(), 0u);
  audit_fails_ = false;
  EXPECT_TRUE(run(service_->create(spec(), kAlice)));
}

TEST_F(CreateTest, NoSandboxIsStoredThatWasNotRecorded) {
  std::size_t stored_when_recorded = 99;
  before_audit_ = [&] { stored_when_recorded = store_.rows.size(); };
  make();
  EXPECT_EQ(stored_when_recorded, 0u);
  EXPECT_EQ(store_.rows.size(), 1u);
}

TEST_F(CreateTest, ASandboxThatEndsBeforeTheCreateAnswersIsListedAsEnded) {
  runtime_.hold_answer("create");
  auto begun = begin(service_->create(spec(), kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("answer create") == 1; }));
  auto id = *SandboxId::parse(runtime_.sandboxes.begin()->first);
  EXPECT_FALSE(exists(id));
  runtime_.end(id, runtime::EndCause::exited, 3);
  runtime_.release("answer create");
  ASSERT_TRUE(until([&] { return begun.done(); }));
  ASSERT_TRUE(begun.value());
  EXPECT_EQ(begun.value()->status.state, State::failed);
  EXPECT_EQ(begun.value()->status.reason, "CONTAINER_EXITED_ERROR");
  EXPECT_EQ(state(id), State::failed);
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok", "sandbox.end ok"}));
}

TEST_F(CreateTest, ADeleteDuringTheCreateDoesNotKnowTheIdYet) {
  runtime_.hold_answer("create");
  auto begun = begin(service_->create(spec(), kAlice));
  ASSERT_TRUE(until([&] { return runtime_.waiting("answer create") == 1; }));
  auto id = *SandboxId::parse(runtime_.sandboxes.begin()->first);
  auto gone = run(service_->destroy(id, kLocal));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind(), Errc::not_found);
  runtime_.release("answer create");
  ASSERT_TRUE(until([&] { return begun.done(); }));
  EXPECT_TRUE(begun.value());
  EXPECT_TRUE(run(service_->destroy(id, kAlice)));
}

TEST_F(CreateTest, ACreateFinishesAlthoughItsCallerIsCancelled) {
  runtime_.hold("create");
  bool ended = false;
  asio::cancellation_signal hang_up;
  auto slot = std::make_shared<std::optional<Result<Sandbox>>>();
  asio::co_spawn(io_.get_executor(), fill<Result<Sandbox>>(service_->create(spec(), kAlice), slot),
                 asio::bind_cancellation_slot(hang_up.slot(), [&](std::exception_ptr) { ended = true; }));
  ASSERT_TRUE(until([&] { return runtime_.waiting("create") == 1; }));
  hang_up.emit(asio::cancellation_type::terminal);
  ASSERT_TRUE(until([&] { return ended; }));
  EXPECT_EQ(service_->list({}, 1, 20, kLocal).total, 0u);
  runtime_.release("create");
  ASSERT_TRUE(until([&] { return service_->list({}, 1, 20, kLocal).total == 1; }));
  EXPECT_EQ(store_.rows.size(), 1u);
  EXPECT_EQ(audited(), (Lines{"sandbox.create ok"}));
}

}  // namespace
}  // namespace osb::lifecycle
