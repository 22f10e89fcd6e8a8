#include "runtime/process/process_runtime.h"

#include <gtest/gtest.h>

namespace osb::runtime {
namespace {

constexpr std::uint64_t kHostMemory = 8ull << 30;

image::Image host_image() {
  image::Image image;
  image.host_view = true;
  return image;
}

std::string field_at_fault(const SandboxSpec& spec, const image::Image& image) {
  auto checked = check_for_process(spec, image, kHostMemory);
  if (checked) return "none";
  EXPECT_FALSE(checked.error().hint().empty());
  return checked.error().field();
}

TEST(ProcessRuntime, APlainSandboxOfTheHostImageIsFine) { EXPECT_EQ(field_at_fault({}, host_image()), "none"); }

TEST(ProcessRuntime, WhatItCannotDoIsRefusedByField) {
  SandboxSpec root;
  root.policy.user = UserMode::root;
  EXPECT_EQ(field_at_fault(root, host_image()), "extensions.opensandbox.mode");
  SandboxSpec writable;
  writable.policy.root = RootMode::writable;
  EXPECT_EQ(field_at_fault(writable, host_image()), "extensions.opensandbox.root");
  SandboxSpec large;
  large.limits.disk_bytes = kHostMemory / 2 + 1;
  EXPECT_EQ(field_at_fault(large, host_image()), "resourceLimits.disk");
  SandboxSpec snapshot;
  snapshot.snapshot_id = "s";
  EXPECT_EQ(field_at_fault(snapshot, host_image()), "snapshotId");
  EXPECT_EQ(field_at_fault({}, image::Image{}), "image.uri");
}

}  // namespace
}  // namespace osb::runtime
