// Creates whose image must be pulled first, over a store that pulls when the test says so.
#include <gtest/gtest.h>

#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

constexpr const char* kRemote = "registry.example/app:1";

class Pending : public ServiceFixture {
 protected:
  void TearDown() override {
    images_.let_pulls_go();
    stop_service();
  }
  SandboxSpec remote(std::optional<std::int64_t> timeout = 600) {
    auto out = spec(timeout);
    out.image = kRemote;
    return out;
  }
  SandboxId begin_one(std::string password = "") {
    auto wanted = remote();
    wanted.image_auth = {"me", std::move(password)};
    auto made = run(service_->create(std::move(wanted), kAlice));
    EXPECT_TRUE(made) << made.error().what();
    EXPECT_EQ(made->status.state, State::pending);
    EXPECT_EQ(made->status.reason, "image_pulling");
    return made->id;
  }
  bool settles(const SandboxId& id, State wanted) {
    return until([&] { return state(id) == wanted; });
  }
  int pulls() {
    std::lock_guard lock(images_.gate->mutex);
    return images_.gate->pulls;
  }
  int cancelled() {
    std::lock_guard lock(images_.gate->mutex);
    return images_.gate->cancelled;
  }
};

TEST_F(Pending, RunsWhenTheImageIsHere) {
  auto id = begin_one();
  EXPECT_TRUE(runtime_.sandboxes.empty()) << "nothing is made before the image is here";
  EXPECT_TRUE(service_->image_in_use(kRemote)) << "nobody may remove what it waits for";
  images_.let_pulls_go();
  ASSERT_TRUE(settles(id, State::running));
  EXPECT_EQ(runtime_.sandboxes.count(id.text()), 1u);
  EXPECT_EQ(audited(), (std::vector<std::string>{"sandbox.create ok", "image.pull ok"}));
}

TEST_F(Pending, ThePasswordGoesToThePullAndNowhereElse) {
  auto id = begin_one("sesame");
  ASSERT_TRUE(until([&] { return pulls() == 1; }));
  EXPECT_EQ(images_.gate->password, "sesame");
  EXPECT_TRUE(service_->get(id, kAlice)->spec.image_auth.password.empty());
  images_.let_pulls_go();
  ASSERT_TRUE(settles(id, State::running));
  EXPECT_TRUE(runtime_.sandboxes.at(id.text()).spec.image_auth.password.empty());
  for (const auto& line : lines_) EXPECT_EQ(line.find("sesame"), std::string::npos);
}

TEST_F(Pending, ManyWaitForOnePullButNotWithOtherCredentials) {
  auto one = begin_one("a");
  auto two = begin_one("a");
  auto other = begin_one("b");
  ASSERT_TRUE(until([&] { return pulls() == 2; }));
  images_.let_pulls_go();
  for (const auto& id : {one, two, other}) EXPECT_TRUE(settles(id, State::running));
  EXPECT_EQ(pulls(), 2);
}

TEST_F(Pending, FailsWithTheReasonOfThePull) {
  auto id = begin_one();
  images_.let_pulls_go(Error(Errc::permission_denied, "the registry wants credentials"));
  ASSERT_TRUE(settles(id, State::failed));
  auto status = service_->get(id, kAlice)->status;
  EXPECT_EQ(status.reason, "image_pull_failed");
  EXPECT_NE(status.message.find("wants credentials"), std::string::npos);
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_TRUE(run(service_->destroy(id, kAlice)));
}

TEST_F(Pending, DeletedItLetsThePullGo) {
  auto one = begin_one();
  auto two = begin_one();
  ASSERT_TRUE(until([&] { return pulls() == 1; }));
  ASSERT_TRUE(run(service_->destroy(one, kAlice)));
  EXPECT_FALSE(exists(one));
  settle();
  EXPECT_EQ(cancelled(), 0) << "another still waits";
  ASSERT_TRUE(run(service_->destroy(two, kAlice)));
  ASSERT_TRUE(until([&] { return cancelled() == 1; }));
  EXPECT_TRUE(runtime_.sandboxes.empty());
  EXPECT_FALSE(exists(two));
}

TEST_F(Pending, AfterARestartItHasFailed) {
  auto id = begin_one();
  ASSERT_TRUE(restart());
  auto status = service_->get(id, kAlice)->status;
  EXPECT_EQ(status.state, State::failed);
  EXPECT_EQ(status.reason, "image_pull_failed");
}

TEST_F(Pending, CanBeRenewedAndNotPaused) {
  auto id = begin_one();
  EXPECT_FALSE(run(service_->pause(id, kAlice)));
  ASSERT_TRUE(run(service_->renew(id, in_millis(7'200'000), kAlice)));
  images_.let_pulls_go();
  ASSERT_TRUE(settles(id, State::running));
  EXPECT_EQ(runtime_.sandboxes.at(id.text()).deadline_boot_nanos, service_->get(id, kAlice)->deadline_boot_nanos);
}

TEST_F(Pending, ARuntimeThatFailsIsTold) {
  auto id = begin_one();
  runtime_.fail_next("create", Error(Errc::internal, "no room"));
  images_.let_pulls_go();
  ASSERT_TRUE(settles(id, State::failed));
  EXPECT_EQ(service_->get(id, kAlice)->status.reason, "start_failed");
}

TEST_F(Pending, NeverAndShortNamesAreRefusedAtOnce) {
  auto wanted = remote();
  wanted.image = "app:1";
  auto missing = run(service_->create(wanted, kAlice));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), "SANDBOX::IMAGE_NOT_FOUND");
  options_.pull_missing = false;
  service_->set_options(options_);
  EXPECT_FALSE(run(service_->create(remote(), kAlice)));
  EXPECT_EQ(pulls(), 0);
}

TEST_F(Pending, PruningTakesWhatHasNoNameAndSparesWhatRuns) {
  images_.names = {"host", "debian:12", "sha256:" + std::string(64, 'b')};
  auto made = run(service_->prune_images(false, kLocal));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->names, (std::vector<std::string>{"sha256:" + std::string(64, 'b')}));
  auto wanted = spec();
  wanted.image = "debian:12";
  ASSERT_TRUE(run(service_->create(wanted, kAlice)));
  EXPECT_TRUE(run(service_->prune_images(true, kLocal))->names.empty());
  auto removed = run(service_->remove_image("debian:12", kLocal));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind(), Errc::conflict);
}

}  // namespace
}  // namespace osb::lifecycle
