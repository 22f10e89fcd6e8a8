#include "lifecycle/idempotency.h"

#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

class IdempotencyTest : public ServiceFixture {
 protected:
  Result<Created> create(std::string key, std::string fingerprint = "a", const Caller& caller = kAlice) {
    return run(service_->create_once(spec(), {std::move(key), std::move(fingerprint)}, caller));
  }
};

TEST_F(IdempotencyTest, TheSameKeyAndRequestGiveTheSameSandbox) {
  auto first = create("k");
  auto again = create("k");
  ASSERT_TRUE(first && again);
  EXPECT_FALSE(first->replayed);
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(again->sandbox.id, first->sandbox.id);
  EXPECT_EQ(runtime_.count("create"), 1u);
}

TEST_F(IdempotencyTest, AnotherKeyOrAnotherCallerMakesAnotherSandbox) {
  auto first = create("k");
  EXPECT_NE(create("other")->sandbox.id, first->sandbox.id);
  EXPECT_NE(create("k", "a", kBob)->sandbox.id, first->sandbox.id);
}

TEST_F(IdempotencyTest, AnotherRequestWithTheKeyIsRefused) {
  ASSERT_TRUE(create("k"));
  auto refused = create("k", "b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), Errc::malformed);
  EXPECT_EQ(refused.error().code(), "IDEMPOTENCY::CONFLICT");
}

TEST_F(IdempotencyTest, DuplicatesAtTheSameTimeWaitForTheFirst) {
  runtime_.hold("create");
  auto first = begin(service_->create_once(spec(), {"k", "a"}, kAlice));
  auto second = begin(service_->create_once(spec(), {"k", "a"}, kAlice));
  settle();
  EXPECT_FALSE(second.done());
  runtime_.release("create");
  ASSERT_TRUE(until([&] { return first.done() && second.done(); }));
  EXPECT_EQ(second.value()->sandbox.id, first.value()->sandbox.id);
  EXPECT_TRUE(second.value()->replayed);
  EXPECT_EQ(runtime_.count("create"), 1u);
}

TEST_F(IdempotencyTest, AFailedCreateFreesTheKeyAndTellsThoseWhoWait) {
  runtime_.hold("create");
  runtime_.fail_next("create", Error(Errc::exhausted, "no more"));
  auto first = begin(service_->create_once(spec(), {"k", "a"}, kAlice));
  auto second = begin(service_->create_once(spec(), {"k", "a"}, kAlice));
  settle();
  runtime_.release("create");
  ASSERT_TRUE(until([&] { return first.done() && second.done(); }));
  EXPECT_EQ(first.value().error().kind(), Errc::unavailable);
  EXPECT_EQ(second.value().error().kind(), Errc::unavailable);
  auto later = create("k", "b");
  ASSERT_TRUE(later) << "the key is free, also for another request";
  EXPECT_FALSE(later->replayed);
}

TEST_F(IdempotencyTest, KeysSurviveARestart) {
  auto first = create("k");
  ASSERT_TRUE(restart());
  auto again = create("k");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->sandbox.id, first->sandbox.id);
  EXPECT_FALSE(create("k", "b"));
}

TEST_F(IdempotencyTest, AKeyWhoseSandboxIsGoneMakesNoSecondOne) {
  auto first = create("k");
  ASSERT_TRUE(run(service_->destroy(first->sandbox.id, kAlice)));
  auto again = create("k");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), "IDEMPOTENCY::GONE");
}

TEST_F(IdempotencyTest, AKeyLastsADay) {
  auto first = create("k");
  g_wall_offset_micros = CreateKeys::kLifetimeMicros + 1;
  auto later = create("k", "b");
  ASSERT_TRUE(later);
  EXPECT_NE(later->sandbox.id, first->sandbox.id);
  EXPECT_EQ(store_.keys.size(), 1u);
}

TEST(IdempotencyKey, HasAFixedAlphabetAndLength) {
  EXPECT_TRUE(is_idempotency_key("Az09._:-"));
  EXPECT_TRUE(is_idempotency_key(std::string(128, 'a')));
  for (std::string bad : {"", " ", "a b", "a/b", "\xC3\xA5"}) EXPECT_FALSE(is_idempotency_key(bad)) << bad;
  EXPECT_FALSE(is_idempotency_key(std::string(129, 'a')));
}

}  // namespace
}  // namespace osb::lifecycle
