#include "launch/held_root.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace osb::launch {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

enter::EnterPlan plan_of(const char* layer, bool host_view) {
  enter::EnterPlan plan;
  plan.layer_paths = {layer};
  plan.host_view = host_view;
  plan.shape = "shapes/1";
  return plan;
}

HeldRoot held_for(const enter::EnterPlan& plan, std::uint64_t made_at) {
  return {.tree = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
          .layers = plan.layer_paths,
          .host_view = plan.host_view,
          .shape = plan.shape,
          .made_at = made_at};
}

TEST(HeldRoot, ServesThePlanItWasMadeFor) {
  auto plan = plan_of("/layers/a", false);
  EXPECT_TRUE(held_for(plan, 0).serves(plan, 1000 * kSecond));
}

TEST(HeldRoot, ServesNoOtherImageShapeOrView) {
  auto plan = plan_of("/layers/a", false);
  auto held = held_for(plan, 0);
  EXPECT_FALSE(held.serves(plan_of("/layers/b", false), 0));
  EXPECT_FALSE(held.serves(plan_of("/layers/a", true), 0));
  auto other_limits = plan;
  other_limits.shape = "shapes/2";
  EXPECT_FALSE(held.serves(other_limits, 0));
  EXPECT_FALSE(HeldRoot().serves(plan, 0));
}

TEST(HeldRoot, ThatShowsTheHostIsBelievedForAFewSecondsOnly) {
  auto plan = plan_of("/layers/host", true);
  auto held = held_for(plan, 100 * kSecond);
  EXPECT_TRUE(held.serves(plan, 102 * kSecond));
  EXPECT_FALSE(held.serves(plan, 104 * kSecond));
}

TEST(HeldRoot, ThatNobodyAsksForGoesSoonerWhenItShowsTheHost) {
  auto host = held_for(plan_of("/layers/host", true), 100 * kSecond);
  auto image = held_for(plan_of("/layers/a", false), 100 * kSecond);
  EXPECT_FALSE(host.is_stale(102 * kSecond));
  EXPECT_TRUE(host.is_stale(104 * kSecond));
  EXPECT_FALSE(image.is_stale(104 * kSecond));
  EXPECT_TRUE(image.is_stale(161 * kSecond));
  EXPECT_FALSE(HeldRoot().is_stale(161 * kSecond));
}

TEST(HeldRoot, IsOnlyOfWhatCannotBeWritten) {
  auto plan = plan_of("/layers/a", false);
  EXPECT_TRUE(can_be_held(plan));
  auto writable = plan;
  writable.policy.root = RootMode::writable;
  EXPECT_FALSE(can_be_held(writable));
  auto from_snapshot = plan;
  from_snapshot.snapshot_layers = 1;
  EXPECT_FALSE(can_be_held(from_snapshot));
  auto with_volume = plan;
  with_volume.volumes.emplace_back();
  EXPECT_FALSE(can_be_held(with_volume));
}

}  // namespace
}  // namespace osb::launch
