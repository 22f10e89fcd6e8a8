#include "enter/plan_message.h"

#include <gtest/gtest.h>

namespace osb::enter {
namespace {

EnterPlan example() {
  EnterPlan plan;
  plan.host.work_dir = "/run/x/work";
  plan.host.directories = {{"/usr", "usr"}};
  plan.host.proc_masks = {"kcore", "keys"};
  plan.host.landlock_abi = 6;
  plan.host.dev_null = 40;
  plan.limits.memory_bytes = 77;
  plan.layer_paths = {"/a", "/b"};
  plan.volumes.push_back({.mount_path = "/data", .sub_path = "s", .tree = 50, .socket = -1, .user_namespace = 51, .read_only = true});
  plan.filter = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  plan.cgroup = 41;
  plan.cgroup_tasks = {42, 43};
  plan.report = 44;
  plan.fail_at = wire::Step::proc;
  return plan;
}

TEST(PlanMessage, CarriesAPlanWithItsDescriptorsRenumbered) {
  auto message = write_plan(example());
  EXPECT_EQ(message.descriptors[0], 41);  // the stem clones into it without reading the rest
  std::vector<int> received;
  for (int fd : message.descriptors) received.push_back(fd + 100);
  auto plan = read_plan(message.bytes, received.data(), received.size());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->host.work_dir, "/run/x/work");
  EXPECT_EQ(plan->host.directories[0].name, "usr");
  EXPECT_EQ(plan->host.proc_masks[1], "keys");
  EXPECT_EQ(plan->host.dev_null, 140);
  EXPECT_EQ(plan->limits.memory_bytes, 77u);
  EXPECT_EQ(plan->layer_paths, example().layer_paths);
  ASSERT_EQ(plan->volumes.size(), 1u);
  EXPECT_EQ(plan->volumes[0].tree, 150);
  EXPECT_EQ(plan->volumes[0].socket, -1);
  EXPECT_TRUE(plan->volumes[0].read_only);
  EXPECT_EQ(plan->filter[1].k, 8u);
  EXPECT_EQ(plan->cgroup_tasks, (std::vector<int>{142, 143}));
  EXPECT_EQ(plan->report, 144);
  EXPECT_EQ(plan->started, -1);
  EXPECT_EQ(plan->fail_at, wire::Step::proc);
}

TEST(PlanMessage, ThatIsCutShortOrTooLongOrNamesAMissingDescriptorIsRefused) {
  auto message = write_plan(example());
  std::vector<int> fds(message.descriptors);
  ASSERT_TRUE(read_plan(message.bytes, fds.data(), fds.size()));  // control
  for (std::size_t size = 0; size < message.bytes.size(); ++size)
    EXPECT_FALSE(read_plan(std::string_view(message.bytes).substr(0, size), fds.data(), fds.size())) << size;
  EXPECT_FALSE(read_plan(message.bytes + "x", fds.data(), fds.size()));
  EXPECT_FALSE(read_plan(message.bytes, fds.data(), fds.size() - 1));
}

}  // namespace
}  // namespace osb::enter
