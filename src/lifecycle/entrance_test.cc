// The line before a create, and creates side by side: with a runtime that answers when the test says so.
#include "lifecycle/entrance.h"

#include <gmock/gmock.h>

#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

class EntranceTest : public ServiceFixture {
 protected:
  void allow(std::size_t creates, std::size_t waiting_per_key = 256) {
    options_.admission.creates = creates;
    options_.admission.waiting_per_key = waiting_per_key;
    ASSERT_TRUE(restart());
  }
  Begun<Result<Sandbox>> ask(const Caller& caller) {
    auto begun = begin(service_->create(spec(), caller));
    settle();
    return begun;
  }
  std::vector<Begun<Result<Sandbox>>> ask(std::size_t many, const Caller& caller) {
    std::vector<Begun<Result<Sandbox>>> out;
    for (std::size_t i = 0; i < many; ++i) out.push_back(ask(caller));
    return out;
  }
  static std::string refusal(Begun<Result<Sandbox>>& begun) {
    if (!begun.done()) return "still waiting";
    return begun.value() ? "made" : begun.value().error().code();
  }
};

TEST_F(EntranceTest, ACreateThatTakesLongHoldsUpNobody) {
  runtime_.hold_next("create");
  auto slow = ask(kAlice);
  ASSERT_EQ(runtime_.waiting("create"), 1u);
  auto same_key = run(service_->create(spec(), kAlice));
  EXPECT_TRUE(same_key) << "the first one is under way all the while";
  auto once = run(service_->create_once(spec(), {"k", "f"}, kBob));
  EXPECT_TRUE(once);
  EXPECT_TRUE(run(service_->destroy(same_key->id, kAlice)));
  EXPECT_FALSE(slow.done());
  runtime_.release_held("create");
  ASSERT_TRUE(until([&] { return slow.done(); }));
  EXPECT_TRUE(slow.value());
}

TEST_F(EntranceTest, AKeyWithAThousandWaitingDelaysAnotherByOneTurn) {
  allow(4, 1000);
  runtime_.hold("create");
  auto flood = ask(1003, kAlice);  // three places of four, a thousand in line
  EXPECT_EQ(service_->entrance().creates(), 3u);
  EXPECT_EQ(service_->entrance().waiting(), 1000u);
  auto first = ask(kBob);
  EXPECT_EQ(runtime_.count("create"), 4u) << "the fourth place was for somebody else";
  auto second = ask(kBob);
  EXPECT_EQ(service_->entrance().waiting(), 1001u);
  // The four under way, one more of Alice's, then Bob's.
  for (std::size_t made = 1; made <= 6; ++made) {
    runtime_.release_one("create");
    ASSERT_TRUE(until([&] { return service_->live() - service_->entrance().creates() == made; }));
    settle();
  }
  ASSERT_TRUE(second.done());
  EXPECT_TRUE(second.value());
  EXPECT_TRUE(first.value());
  runtime_.release("create");
  ASSERT_TRUE(until([&] { return flood.back().done(); }));
  EXPECT_EQ(service_->live(), 1005u);
  EXPECT_EQ(service_->entrance().creates() + service_->entrance().waiting(), 0u);
}

TEST_F(EntranceTest, TurnsGoRound) {
  allow(1);
  runtime_.hold("create");
  auto alice = ask(3, kAlice);
  auto bob = ask(2, kBob);
  auto local = ask(1, kLocal);
  std::vector<std::string> order;
  for (std::size_t made = 1; made <= 6; ++made) {
    ASSERT_TRUE(until([&] { return runtime_.waiting("create") == 1; }));
    runtime_.release_one("create");
    ASSERT_TRUE(until([&] { return service_->live() >= made && store_.rows.size() == made; }));
    order.clear();
    for (const auto& line : lines_) order.emplace_back(boost::json::parse(line).as_object().at("actor").as_string());
  }
  EXPECT_THAT(order, testing::ElementsAre("alice", "alice", "bob", "local", "alice", "bob"));
}

TEST_F(EntranceTest, AFullLineIsTheKeysOwnAffair) {
  allow(1, 2);
  runtime_.hold("create");
  auto waiting = ask(3, kAlice);
  auto refused = ask(kAlice);
  EXPECT_EQ(refusal(refused), "SANDBOX::KEY_QUEUE_FULL");
  EXPECT_EQ(refused.value().error().kind(), Errc::exhausted);
  auto bob = ask(kBob);
  EXPECT_EQ(refusal(bob), "still waiting");
  runtime_.release("create");
  ASSERT_TRUE(until([&] { return bob.done() && waiting.back().done(); }));
  EXPECT_TRUE(bob.value());
  EXPECT_EQ(service_->live(), 4u);
}

TEST_F(EntranceTest, NobodyWaitsForEver) {
  options_.admission.longest_wait = std::chrono::milliseconds(1);
  allow(1);
  runtime_.hold("create");
  auto first = ask(kAlice);
  auto second = ask(kAlice);
  ASSERT_TRUE(until([&] { return second.done(); }));
  EXPECT_EQ(refusal(second), "SANDBOX::QUEUE_TIMEOUT");
  EXPECT_EQ(service_->entrance().waiting(), 0u);
  runtime_.release("create");
  ASSERT_TRUE(until([&] { return first.done(); }));
  EXPECT_EQ(runtime_.count("create"), 1u);
}

TEST_F(EntranceTest, ThoseInLineAreToldWhenTheLastPlaceIsTaken) {
  options_.max_sandboxes = 1;
  allow(2);
  runtime_.hold("create");
  auto first = ask(kAlice);
  auto second = ask(kAlice);
  EXPECT_EQ(refusal(second), "SANDBOX::LIMIT_REACHED") << "what is being made counts";
  options_.max_sandboxes = 2;
  options_.admission.creates = 1;
  service_->set_options(options_);
  auto third = ask(kAlice);
  EXPECT_EQ(refusal(third), "still waiting");
  options_.max_sandboxes = 1;
  service_->set_options(options_);
  runtime_.release("create");
  ASSERT_TRUE(until([&] { return third.done(); }));
  EXPECT_EQ(refusal(third), "SANDBOX::LIMIT_REACHED");
  EXPECT_TRUE(first.value());
}

TEST_F(EntranceTest, AKeysBoundCountsItsOwnAndIsFreeAfterADelete) {
  options_.admission.sandboxes_per_key = 2;
  allow(4);
  auto first = make(kAlice);
  make(kAlice);
  auto third = run(service_->create(spec(), kAlice));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), "SANDBOX::KEY_LIMIT_REACHED");
  EXPECT_TRUE(run(service_->create(spec(), kBob)));
  EXPECT_TRUE(run(service_->destroy(first.id, kAlice)));
  EXPECT_TRUE(run(service_->create(spec(), kAlice)));
}

TEST_F(EntranceTest, AShortHostRefusesAndLeavesNothing) {
  std::uint64_t available = 1 << 20;
  options_.host_room = [&] { return runtime::HostRoom{.memory_bytes = 1 << 30, .memory_available_bytes = available}; };
  allow(4);
  for (int i = 0; i < 100; ++i) {
    auto made = run(service_->create(spec(), kAlice));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), "SANDBOX::HOST_MEMORY_LOW");
  }
  EXPECT_TRUE(runtime_.calls.size() == runtime_.count("list")) << "the runtime was never asked";
  EXPECT_TRUE(store_.rows.empty());
  EXPECT_EQ(service_->live(), 0u);
  EXPECT_FALSE(service_->entrance().host_has_room());
  EXPECT_LE(lines_.size(), 3u) << "a flood of refusals is told a few times, not a hundred";
  EXPECT_EQ(audited().front(), "sandbox.create SANDBOX::HOST_MEMORY_LOW");
  available = 1 << 29;
  ASSERT_TRUE(until([&] { return service_->entrance().host_has_room(); }));
  EXPECT_TRUE(run(service_->create(spec(), kAlice)));
}

TEST_F(EntranceTest, ACreateThatIsRefusedFreesItsIdempotencyKey) {
  options_.max_sandboxes = 1;
  allow(4);
  auto first = make(kAlice);
  EXPECT_FALSE(run(service_->create_once(spec(), {"k", "f"}, kAlice)));
  EXPECT_TRUE(run(service_->destroy(first.id, kAlice)));
  auto again = run(service_->create_once(spec(), {"k", "f"}, kAlice));
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->replayed);
}

TEST_F(EntranceTest, StoppingEndsTheWaiting) {
  allow(1);
  runtime_.hold("create");
  auto waiting = ask(3, kAlice);
  stop_service();
  for (auto& one : waiting) {
    ASSERT_TRUE(until([&] { return one.done(); }));
    EXPECT_FALSE(one.value());
  }
}

}  // namespace
}  // namespace osb::lifecycle
