#include "lifecycle/admission.h"

#include <gtest/gtest.h>

namespace osb::lifecycle {
namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

runtime::HostRoom plenty() { return {24 * kGiB, 20 * kGiB, 30'000, 19'000, 100 * kGiB}; }

AdmissionLimits limits() {
  AdmissionLimits out;
  out.creates = 4;
  return out;
}

Refusal shortage(const runtime::HostRoom& room, const AdmissionLimits& of = limits()) { return find_shortage(of, room, {}, kGiB); }

TEST(Admission, AHostWithRoomTakesAnother) {
  EXPECT_EQ(shortage(plenty()), Refusal::none);
  EXPECT_EQ(decide(limits(), plenty(), {}, kGiB).verdict, Verdict::admit);
}

TEST(Admission, EachReserveOfTheHostHolds) {
  auto room = plenty();
  room.memory_available_bytes = room.memory_bytes / 10;
  EXPECT_EQ(shortage(room), Refusal::none) << "exactly the reserve";
  room.memory_available_bytes = room.memory_bytes / 11;
  EXPECT_EQ(shortage(room), Refusal::memory);
  room = plenty();
  room.pids_free = 1023;
  EXPECT_EQ(shortage(room), Refusal::pids);
  room.pids_free = 1024;
  EXPECT_EQ(shortage(room), Refusal::none);
  room.descriptors_free = 100;
  EXPECT_EQ(shortage(room), Refusal::descriptors);
  room = plenty();
  room.disk_free_bytes = 63ull << 20;
  EXPECT_EQ(shortage(room), Refusal::disk);
}

TEST(Admission, AHostThatTellsNothingIsNotShortOfAnything) { EXPECT_EQ(shortage({}), Refusal::none); }

TEST(Admission, MemoryLimitsMayAddUpToAnythingUnlessTheOperatorSaysOtherwise) {
  Load load{.promised_bytes = 5000 * kGiB};
  EXPECT_EQ(find_shortage(limits(), plenty(), load, kGiB), Refusal::none);
  auto strict = limits();
  strict.memory_overcommit_percent = 200;
  load.promised_bytes = 46 * kGiB;
  EXPECT_EQ(find_shortage(strict, plenty(), load, kGiB), Refusal::none);
  EXPECT_EQ(find_shortage(strict, plenty(), load, 3 * kGiB), Refusal::promises);
}

TEST(Admission, TheServersBoundComesBeforeTheKeys) {
  auto bounded = limits();
  bounded.sandboxes = 10;
  bounded.sandboxes_per_key = 3;
  EXPECT_EQ(find_shortage(bounded, plenty(), {.sandboxes = 9, .key_sandboxes = 2}, 1), Refusal::none);
  EXPECT_EQ(find_shortage(bounded, plenty(), {.sandboxes = 9, .key_sandboxes = 3}, 1), Refusal::key_sandboxes);
  EXPECT_EQ(find_shortage(bounded, plenty(), {.sandboxes = 10, .key_sandboxes = 3}, 1), Refusal::sandboxes);
}

TEST(Admission, OneKeyNeverHasEveryPlace) {
  EXPECT_EQ(limits().most_creates_of_a_key(), 3u);
  EXPECT_EQ(decide(limits(), plenty(), {.creates = 3, .key_creates = 3}, 1).verdict, Verdict::wait);
  EXPECT_EQ(decide(limits(), plenty(), {.creates = 3, .key_creates = 0}, 1).verdict, Verdict::admit);
  EXPECT_EQ(decide(limits(), plenty(), {.creates = 4, .key_creates = 0}, 1).verdict, Verdict::wait);
  auto one = limits();
  one.creates = 1;
  EXPECT_EQ(one.most_creates_of_a_key(), 1u);
  EXPECT_EQ(decide(one, plenty(), {}, 1).verdict, Verdict::admit);
  one.creates = 0;
  EXPECT_GE(one.most_creates(), 8u);
}

TEST(Admission, LinesHaveAnEnd) {
  auto bounded = limits();
  bounded.waiting_per_key = 2;
  bounded.waiting = 3;
  auto at = [&](std::size_t key_waiting, std::size_t waiting) {
    return decide(bounded, plenty(), {.creates = 4, .waiting = waiting, .key_waiting = key_waiting}, 1);
  };
  EXPECT_EQ(at(1, 2).verdict, Verdict::wait);
  EXPECT_EQ(at(2, 2).why, Refusal::key_line);
  EXPECT_EQ(at(0, 3).why, Refusal::line);
}

TEST(Admission, NobodyOvertakesTheirOwnLine) {
  EXPECT_EQ(decide(limits(), plenty(), {.creates = 0, .waiting = 1, .key_waiting = 1}, 1).verdict, Verdict::wait);
}

TEST(Admission, EveryRefusalHasACodeASentenceAFixAndATime) {
  for (auto why : {Refusal::memory, Refusal::promises, Refusal::pids, Refusal::descriptors, Refusal::disk, Refusal::host,
                   Refusal::sandboxes, Refusal::key_sandboxes, Refusal::line, Refusal::key_line, Refusal::waited}) {
    auto error = refusal_error(why, limits());
    EXPECT_TRUE(error.code().starts_with("SANDBOX::")) << error.what();
    EXPECT_FALSE(error.what().empty());
    EXPECT_FALSE(error.hint().empty());
    EXPECT_GE(retry_after_seconds(error.code()), 1) << error.code();
    bool own = why == Refusal::key_sandboxes || why == Refusal::key_line;
    EXPECT_EQ(error.kind(), own ? Errc::exhausted : Errc::unavailable) << error.code();
  }
  EXPECT_EQ(retry_after_seconds("DOCKER::SANDBOX_NOT_FOUND"), 0);
}

TEST(Admission, WhatRunsOutBelowIsToldAsTheHostBeingFull) {
  auto told =
      out_of_room(Error(Errc::exhausted, "step clone failed: Resource temporarily unavailable").with_code("DOCKER::SANDBOX_START_FAILED"));
  EXPECT_EQ(told.kind(), Errc::unavailable);
  EXPECT_EQ(told.code(), "SANDBOX::HOST_EXHAUSTED");
  auto other = out_of_room(Error(Errc::internal, "a bug"));
  EXPECT_EQ(other.kind(), Errc::internal);
}

}  // namespace
}  // namespace osb::lifecycle
