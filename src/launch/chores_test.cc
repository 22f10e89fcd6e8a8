#include "launch/chores.h"

#include <gtest/gtest.h>

namespace osb::launch {
namespace {

TEST(Chores, ComeInTheOrderOfTheirTimes) {
  Chores chores;
  chores.put(30, Chore::deadline, "a");
  chores.put(10, Chore::hasten, "b");
  chores.put(20, Chore::trim, {});
  EXPECT_EQ(chores.next(), 10u);
  EXPECT_FALSE(chores.take(9));
  EXPECT_EQ(chores.take(25)->id, "b");
  EXPECT_EQ(chores.take(25)->chore, Chore::trim);
  EXPECT_FALSE(chores.take(25));
  EXPECT_EQ(chores.next(), 30u);
}

TEST(Chores, OneOfAKindTakesThePlaceOfTheOther) {
  Chores chores;
  chores.put(30, Chore::deadline, "a");
  chores.put(10, Chore::deadline, "a");
  chores.put(50, Chore::deadline, "a");
  chores.put(40, Chore::deadline, "b");
  EXPECT_EQ(chores.size(), 2u);
  EXPECT_EQ(chores.take(100)->id, "b");
  EXPECT_EQ(chores.take(100)->at, 50u);
  EXPECT_FALSE(chores.take(100));
}

TEST(Chores, OneThatWasDoneCanBePutAgain) {
  Chores chores;
  for (std::uint64_t at : {10u, 20u, 30u}) {
    chores.put(at, Chore::retry_remove, "a");
    EXPECT_EQ(chores.take(at)->at, at);
  }
  EXPECT_EQ(chores.size(), 0u);
  EXPECT_EQ(chores.next(), 0u);
}

TEST(Chores, OfWhoeverEndsAreGone) {
  Chores chores;
  for (auto chore : {Chore::deadline, Chore::hasten, Chore::check_frozen, Chore::capture_deadline}) chores.put(10, chore, "a");
  chores.put(10, Chore::deadline, "b");
  chores.drop_all_of("a");
  chores.drop_all_of("a");
  EXPECT_EQ(chores.size(), 1u);
  EXPECT_EQ(chores.take(10)->id, "b");
}

}  // namespace
}  // namespace osb::launch
