#include "lifecycle/pools.h"

#include "lifecycle/service_fixture.h"
#include "model/pool_request.h"

namespace osb::lifecycle {
namespace {

TEST(WantedOfTest, KeepsTheBufferBetweenItsBoundsAndThePoolBelowItsMost) {
  PoolCapacity size{.buffer_min = 2, .buffer_max = 5, .pool_min = 0, .pool_max = 8};
  EXPECT_EQ(wanted_of(size, 0, 0), 2u);
  EXPECT_EQ(wanted_of(size, 4, 0), 4u);
  EXPECT_EQ(wanted_of(size, 99, 0), 5u);
  EXPECT_EQ(wanted_of(size, 99, 7), 1u);
  EXPECT_EQ(wanted_of(size, 99, 9), 0u);
  size.pool_min = 6;
  EXPECT_EQ(wanted_of(size, 0, 0), 6u);
  EXPECT_EQ(wanted_of(size, 0, 5), 2u);
  EXPECT_EQ(wanted_of({}, 99, 0), 0u);
}

class PoolsTest : public ServiceFixture {
 protected:
  void SetUp() override {
    runtime_.set_spares_supported(true);
    options_.spares.automatic = false;
    ServiceFixture::SetUp();
  }
  PoolRecord pool(std::string name, PoolCapacity size = {2, 4, 0, 10}) {
    PoolRecord out;
    out.name = std::move(name);
    out.spec = spec();
    out.capacity = size;
    return out;
  }
  SandboxSpec from(const std::string& name) {
    auto out = spec();
    out.extensions["poolRef"] = name;
    return out;
  }
  std::size_t available(const std::string& name) { return service_->pools().get(name, kLocal)->available; }
  bool has(const std::string& name, std::size_t count) {
    return until([&] { return available(name) == count; });
  }
};

TEST_F(PoolsTest, KeepsItsLeastReadyAndCountsWhatWasClaimed) {
  ASSERT_TRUE(service_->pools().create(pool("agents"), kLocal));
  ASSERT_TRUE(has("agents", 2));
  auto made = run(service_->create(from("agents"), kAlice));
  ASSERT_TRUE(made) << made.error().what();
  EXPECT_EQ(runtime_.count("claim"), 1u);
  auto status = *service_->pools().get("agents", kLocal);
  EXPECT_EQ(status.allocated, 1u);
  ASSERT_TRUE(has("agents", 2));
  ASSERT_TRUE(run(service_->destroy(made->id, kAlice)));
  EXPECT_EQ(service_->pools().get("agents", kLocal)->allocated, 0u);
}

TEST_F(PoolsTest, IsOnlyForCreatesThatNameIt) {
  ASSERT_TRUE(service_->pools().create(pool("agents"), kLocal));
  ASSERT_TRUE(has("agents", 2));
  make();
  EXPECT_EQ(runtime_.count("claim"), 0u);
  EXPECT_EQ(available("agents"), 2u);
}

TEST_F(PoolsTest, AnEmptyOneMeansTheSlowerWay) {
  ASSERT_TRUE(service_->pools().create(pool("agents", {0, 0, 0, 10}), kLocal));
  ASSERT_TRUE(run(service_->create(from("agents"), kAlice)));
  EXPECT_EQ(runtime_.count("create"), 1u);
  EXPECT_EQ(service_->pools().get("agents", kLocal)->allocated, 1u);
}

TEST_F(PoolsTest, OutlivesTheServiceAndItsSparesDoNot) {
  ASSERT_TRUE(service_->pools().create(pool("agents"), kBob));
  ASSERT_TRUE(has("agents", 2));
  ASSERT_TRUE(restart());
  EXPECT_EQ(runtime_.count("destroy"), 2u);
  ASSERT_TRUE(has("agents", 2));
  EXPECT_EQ(service_->pools().get("agents", kBob)->pool.owner, "bob");
}

TEST_F(PoolsTest, BelongsToItsKeyOrToEverybody) {
  ASSERT_TRUE(service_->pools().create(pool("bobs"), kBob));
  ASSERT_TRUE(service_->pools().create(pool("shared"), kLocal));
  EXPECT_EQ(service_->pools().get("bobs", kAlice).error().code(), "KUBERNETES::POOL_NOT_FOUND");
  EXPECT_EQ(service_->pools().create(pool("bobs"), kAlice).error().code(), "KUBERNETES::POOL_ALREADY_EXISTS");
  EXPECT_EQ(service_->pools().list(kAlice)->size(), 1u);
  EXPECT_EQ(service_->pools().remove("shared", kAlice).error().kind(), Errc::permission_denied);
  EXPECT_FALSE(service_->pools().spec_of("bobs", kAlice));
  EXPECT_TRUE(service_->pools().spec_of("shared", kAlice));
  EXPECT_TRUE(service_->pools().remove("bobs", kBob));
}

TEST_F(PoolsTest, FollowsItsSizeAndLeavesNothingWhenItGoes) {
  ASSERT_TRUE(service_->pools().create(pool("agents"), kLocal));
  ASSERT_TRUE(has("agents", 2));
  ASSERT_TRUE(service_->pools().resize("agents", {5, 5, 0, 10}, kLocal));
  ASSERT_TRUE(has("agents", 5));
  ASSERT_TRUE(service_->pools().resize("agents", {0, 1, 0, 10}, kLocal));
  ASSERT_TRUE(until([&] { return runtime_.sandboxes.empty(); }));
  ASSERT_TRUE(service_->pools().resize("agents", {3, 3, 0, 10}, kLocal));
  ASSERT_TRUE(has("agents", 3));
  ASSERT_TRUE(service_->pools().remove("agents", kLocal));
  EXPECT_TRUE(until([&] { return runtime_.sandboxes.empty(); }));
  EXPECT_TRUE(store_.pool_rows.empty());
}

TEST_F(PoolsTest, DrainedItIsMadeAnew) {
  ASSERT_TRUE(service_->pools().create(pool("agents"), kLocal));
  ASSERT_TRUE(has("agents", 2));
  auto before = runtime_.sandboxes;
  EXPECT_EQ(*service_->pools().drain("agents", kLocal), 2u);
  ASSERT_TRUE(until([&] { return runtime_.count("destroy") == 2 && available("agents") == 2; }));
  for (const auto& [id, unused] : before) EXPECT_FALSE(runtime_.sandboxes.contains(id));
}

TEST_F(PoolsTest, OfTheConfigurationIsEverybodysAndNobodysToChange) {
  options_.pools = {pool("agents")};
  ASSERT_TRUE(restart());
  ASSERT_TRUE(has("agents", 2));
  EXPECT_TRUE(service_->pools().get("agents", kAlice)->configured);
  EXPECT_EQ(service_->pools().remove("agents", kLocal).error().kind(), Errc::permission_denied);
  EXPECT_EQ(service_->pools().resize("agents", {}, kLocal).error().kind(), Errc::permission_denied);
  auto without = options_;
  without.pools.clear();
  service_->set_options(without);
  EXPECT_FALSE(service_->pools().get("agents", kLocal));
  EXPECT_TRUE(until([&] { return runtime_.sandboxes.empty(); }));
}

TEST_F(PoolsTest, CannotKeepMoreThanTheServerAllows) {
  options_.spares.most = 3;
  ASSERT_TRUE(restart());
  EXPECT_EQ(service_->pools().create(pool("agents", {4, 4, 0, 10}), kLocal).error().field(), "capacitySpec.bufferMin");
  ASSERT_TRUE(service_->pools().create(pool("agents", {0, 4, 4, 10}), kLocal));
  ASSERT_TRUE(has("agents", 3));
  settle();
  EXPECT_EQ(available("agents"), 3u);
}

TEST_F(PoolsTest, WithoutSparesThereAreNone) {
  runtime_.set_spares_supported(false);
  EXPECT_EQ(service_->pools().list(kLocal).error().code(), "KUBERNETES::POOL_NOT_SUPPORTED");
  EXPECT_EQ(service_->pools().create(pool("agents"), kLocal).error().code(), "KUBERNETES::POOL_NOT_SUPPORTED");
}

}  // namespace
}  // namespace osb::lifecycle
