#include "runtime/host_room.h"

#include <gtest/gtest.h>

namespace osb::runtime {
namespace {

TEST(HostRoom, MemoryIsReadFromTheKernelsTable) {
  HostRoom room;
  read_meminfo("MemTotal:       24684000 kB\nMemFree:          100 kB\nMemAvailable:   12342000 kB\nBuffers: 1 kB\n", room);
  EXPECT_EQ(room.memory_bytes, 24'684'000ull * 1024);
  EXPECT_EQ(room.memory_available_bytes, 12'342'000ull * 1024);
}

TEST(HostRoom, WhatCannotBeReadIsNotAShortage) {
  HostRoom room;
  read_meminfo("nonsense", room);
  EXPECT_EQ(room.memory_available_bytes, HostRoom::kUnknown);
  EXPECT_EQ(free_pids("", "32768\n", "1000\n"), HostRoom::kUnknown);
  EXPECT_EQ(free_pids("0.1 0.2 0.3 2/318 4711\n", "", ""), HostRoom::kUnknown);
}

TEST(HostRoom, TheLowerLimitOnTasksHolds) {
  EXPECT_EQ(free_pids("0.1 0.2 0.3 2/318 4711\n", "32768\n", "192699\n"), 32'768u - 318u);
  EXPECT_EQ(free_pids("0.1 0.2 0.3 2/318 4711\n", "4194304\n", "1000\n"), 1000u - 318u);
  EXPECT_EQ(free_pids("0.1 0.2 0.3 2/5000 4711\n", "4096\n", "9999\n"), 0u);
}

TEST(HostRoom, ThisHostHasSomeOfEverything) {
  HostRoomReader reader("/");
  reader.read();
  auto room = reader.read();  // through files that are open already
  EXPECT_GT(room.memory_bytes, room.memory_available_bytes);
  EXPECT_GT(room.memory_available_bytes, 0u);
  for (auto left : {room.pids_free, room.descriptors_free, room.disk_free_bytes}) {
    EXPECT_GT(left, 0u);
    EXPECT_NE(left, HostRoom::kUnknown);
  }
}

}  // namespace
}  // namespace osb::runtime
