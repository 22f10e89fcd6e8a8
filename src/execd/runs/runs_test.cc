// Durable runs: numbered events, reading on, repeated requests, memory.
#include "execd/runs/runs.h"

#include "execd/daemon_fixture.h"

namespace osb::execd {
namespace {

using Texts = std::vector<std::string>;
using runs::EventLog;

std::string event(int n) { return cat("{\"seq\":", n, "}\n\n"); }

TEST(EventLog, GivesEventsBehindANumber) {
  OutputBudget budget;
  EventLog log(budget);
  for (int i = 1; i <= 5; ++i) log.append(event(i), 1, ~0ull);
  auto at = log.find(3);
  std::string out;
  EXPECT_EQ(log.read(at, out, 1000), 0u);
  EXPECT_EQ(out, event(4) + event(5));
  out.clear();
  EXPECT_EQ(log.read(at, out, 1000), 0u);
  EXPECT_EQ(out, "") << "nothing new";
  log.append(event(6), 1, ~0ull);
  log.read(at, out, 1000);
  EXPECT_EQ(out, event(6));
  auto beyond = log.find(99);
  EXPECT_EQ(beyond.next, 7u) << "a number that is not there yet means: whatever comes";
}

TEST(EventLog, ForgetsTheOldestAndSaysHowMany) {
  OutputBudget budget;
  EventLog log(budget);
  std::string big = cat(std::string(9998, 'x'), "\n\n");
  for (int i = 0; i < 500; ++i) log.append(big, 1, ~0ull);
  EXPECT_LE(log.memory(), EventLog::kMaxBytes);
  auto at = log.find(10);
  std::string out;
  auto missed = log.read(at, out, 100'000'000);
  EXPECT_EQ(missed + out.size() / big.size(), 490u);
  EXPECT_GT(missed, 0u);
}

TEST(EventLog, NeverDropsWhatTheProtectedReaderHasNotGot) {
  OutputBudget budget;
  EventLog log(budget);
  std::string big = cat(std::string(9998, 'x'), "\n\n");
  for (int i = 0; i < 200; ++i) log.append(big, 1, 0);
  EventLog::Position at;
  std::string out;
  EXPECT_EQ(log.read(at, out, 100'000'000), 0u);
  EXPECT_EQ(out.size(), 2'000'000u);
  log.release();
  at = {};
  out.clear();
  EXPECT_EQ(log.read(at, out, 1000), 200u) << "all gone, all told";
}

TEST(RunsTable, OldEndedRunsGiveTheirMemoryToNewOnes) {
  asio::io_context io;
  OutputBudget budget;
  runs::Runs table(io.get_executor(), budget);
  std::string big = cat(std::string(99'998, 'x'), "\n\n");
  std::vector<std::shared_ptr<runs::Run>> made;
  std::size_t all = 0;
  for (int i = 0; i < 20; ++i) {
    auto& run = made.emplace_back(table.add());
    for (int n = 0; n < 12; ++n) {
      run->next_seq();
      run->keep(big);
    }
    if (i != 1) run->finish({});
  }
  for (const auto& run : made) all += run->log().memory();
  EXPECT_LE(all, OutputBudget::kAllBytes);
  EXPECT_EQ(made.front()->log().memory(), 0u) << "the oldest gave way";
  EXPECT_GT(made[1]->log().memory(), 500'000u) << "one that runs does not";
  EXPECT_GT(made.back()->log().memory(), 500'000u);
  EXPECT_EQ(table.find(made.front()->id()), made.front()) << "it is still known";
  runs::Reader reader(made.front(), 0);
  std::string out;
  EXPECT_TRUE(reader.take(out));
  EXPECT_NE(out.find("\"missed\":12"), std::string::npos) << out;
}

TEST(RunsTable, WhatAClientHasHadIsGivenBackButItsEnd) {
  asio::io_context io;
  OutputBudget budget;
  runs::Runs table(io.get_executor(), budget);
  std::string big = cat(std::string(9998, 'x'), "\n\n");
  auto produce = [&](const std::shared_ptr<runs::Run>& run) {
    for (int i = 0; i < 50; ++i) {
      run->next_seq();
      run->keep(big);
    }
    run->next_seq();
    run->finish(event(51));
  };
  auto had = table.add();
  auto cut_off = table.add();
  {
    runs::Reader reader(had, 0);
    produce(had);
    std::string out;
    while (reader.take(out)) reader.delivered();
  }
  produce(cut_off);
  std::size_t before = cut_off->log().memory();
  table.give_back();
  EXPECT_LE(had->log().memory(), 32u * 1024);
  EXPECT_EQ(cut_off->log().memory(), before) << "its client may come back for it";
  runs::Reader again(had, 0);
  std::string out;
  EXPECT_TRUE(again.take(out));
  EXPECT_TRUE(out.starts_with("{\"type\":\"truncated\"")) << out.substr(0, 100);
  EXPECT_TRUE(out.ends_with(event(51)));
}

TEST(RunsTable, OnlyTheLastRunsAreRemembered) {
  asio::io_context io;
  OutputBudget budget;
  runs::Runs table(io.get_executor(), budget);
  auto running = table.add({.text = "key", .request = 1});
  for (std::size_t i = 0; i < runs::Runs::kMaxEnded + 50; ++i) table.add()->finish("x");
  table.add();
  EXPECT_LE(table.size(), runs::Runs::kMaxEnded + 2);
  auto found = table.find(runs::Key{.text = "key", .request = 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, running) << "one that runs is never forgotten";
}

class RunsTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    start();
  }
  Reply read_on(std::string_view id, std::uint64_t since) const { return ask("GET", cat("/osb/v1/runs/", id, "/events?since=", since)); }
  Reply post(std::string_view text, std::string_view key) const {
    return ask("POST", "/command", cat("{\"command\":", json_string(text), "}"), cat("Idempotency-Key: ", key, "\r\n"));
  }
  static std::vector<std::int64_t> numbers_of(const std::vector<Event>& events) {
    std::vector<std::int64_t> numbers;
    for (const Event& event : events)
      if (auto* seq = event.if_contains("seq")) numbers.push_back(seq->as_int64());
    return numbers;
  }
};

TEST_F(RunsTest, EventsAreNumberedAndCanBeReadAgainFromAnyNumber) {
  auto events = run("echo a; echo b; exit 3");
  EXPECT_EQ(numbers_of(events), (std::vector<std::int64_t>{1, 2, 3, 4}));
  std::string id = text_of(events[0], "run_id");
  EXPECT_EQ(id, text_of(events[0], "text"));
  auto again = events_of(read_on(id, 0).body);
  EXPECT_EQ(numbers_of(again), numbers_of(events));
  auto rest = events_of(read_on(id, 2).body);
  EXPECT_EQ(numbers_of(rest), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(error_code_of(rest), "3");
  EXPECT_EQ(events_of(read_on(id, 4).body).size(), 0u) << "nothing is left to say";
  EXPECT_EQ(read_on("nope", 0).status, 404);
  EXPECT_NE(read_on("nope", 0).body.find("RUN_NOT_FOUND"), std::string::npos);
  EXPECT_EQ(ask("GET", cat("/osb/v1/runs/", id, "/events?since=x")).status, 400);
}

TEST_F(RunsTest, AClientThatWasCutOffReadsOnLive) {
  auto gate = file("gate");
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  std::string id;
  {
    Wire wire = connect();
    wire.request("POST", "/command", cat("{\"command\":\"echo one; cat ", gate, "; exit 5\"}"));
    wire.head();
    std::string body;
    while (body.find("\"one\"") == std::string::npos) body += wire.chunk();
    id = text_of(events_of(body)[0], "run_id");
  }
  Wire second = connect();
  second.request("GET", cat("/osb/v1/runs/", id, "/events?since=2"));
  std::ofstream(gate) << "two\n";
  auto events = events_of(second.reply().body);
  EXPECT_EQ(numbers_of(events), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(output_of(events), (Texts{"stdout:two"}));
  EXPECT_EQ(error_code_of(events), "5");
}

TEST_F(RunsTest, WhatFellOutOfTheLogIsTold) {
  auto gate = file("gate");
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  Wire wire = connect();
  wire.request("POST", "/command", cat("{\"command\":\"echo; cat ", gate, "; seq 1 100000\"}"));
  wire.head();
  std::string id = text_of(events_of(wire.chunk())[0], "run_id");
  wire.close();
  std::ofstream(gate) << "go\n";
  ASSERT_TRUE(eventually([&] { return !status_of(id).at("running").as_bool(); })) << "nobody reads and nobody blocks it";
  ASSERT_TRUE(eventually([&] { return read_on(id, 0).body.find("execution_complete") != std::string::npos; }));
  auto events = events_of(read_on(id, 1).body);
  ASSERT_EQ(text_of(events[0], "type"), "truncated");
  auto numbers = numbers_of(events);
  EXPECT_EQ(events[0].at("missed").as_int64(), numbers.front() - 2);
  EXPECT_EQ(numbers.back(), 100'004) << "init, an empty line, go, 100000 lines, the end";
  EXPECT_EQ(static_cast<std::int64_t>(numbers.size()), numbers.back() - numbers.front() + 1) << "no hole behind the first";
}

TEST_F(RunsTest, ASlowSecondReaderDoesNotSlowTheCommandDown) {
  Wire first = connect();
  first.request("POST", "/command", "{\"command\":\"echo; read x < /dev/null; sleep 0.2; seq 1 400000\"}");
  first.head();
  std::string body = first.chunk();
  std::string id = text_of(events_of(body)[0], "run_id");
  Wire second = connect();
  second.request("GET", cat("/osb/v1/runs/", id, "/events"));
  second.head();  // and reads no further for now
  for (std::string bytes = first.chunk(); !bytes.empty(); bytes = first.chunk()) body += bytes;
  EXPECT_EQ(numbers_of(events_of(body)).size(), 400'003u) << "the first got everything";
  std::string late;
  for (std::string bytes = second.chunk(); !bytes.empty(); bytes = second.chunk()) late += bytes;
  EXPECT_NE(late.find("\"truncated\""), std::string::npos) << "the second was told what it missed";
  EXPECT_NE(late.find("execution_complete"), std::string::npos);
}

TEST_F(RunsTest, ARepeatedRequestAttachesInsteadOfRunningTwice) {
  std::string text = cat("echo x >> ", file("count"), "; echo done");
  auto first = events_of(post(text, "key-1").body);
  auto second = events_of(post(text, "key-1").body);
  EXPECT_EQ(text_of(second[0], "run_id"), text_of(first[0], "run_id"));
  EXPECT_EQ(output_of(second), (Texts{"stdout:done"}));
  EXPECT_EQ(read_text(file("count")), "x\n");
  post(text, "key-2");
  EXPECT_EQ(read_text(file("count")), "x\nx\n") << "another key is another run";
  auto conflict = post("echo other", "key-1");
  EXPECT_EQ(conflict.status, 422);
  EXPECT_NE(conflict.body.find("IDEMPOTENCY_CONFLICT"), std::string::npos);
  EXPECT_EQ(post(text, "bad key").status, 400);
  EXPECT_EQ(post(text, std::string(129, 'k')).status, 400);
  EXPECT_EQ(post(text, std::string(128, 'k')).status, 200);
}

TEST_F(RunsTest, ARequestThatWasRefusedDoesNotUseUpItsKey) {
  auto ask_with = [&](std::string_view body) { return ask("POST", "/command", body, "Idempotency-Key: k\r\n").status; };
  EXPECT_EQ(ask_with("{\"command\":\"true\",\"cwd\":\"/nope\"}"), 400);
  EXPECT_EQ(ask_with("{\"command\":\"true\"}"), 200);
}

TEST_F(RunsTest, ABackgroundStartIsARunToo) {
  std::string id = start_in_background("sleep 60");
  auto events = events_of(read_on(id, 0).body);
  EXPECT_EQ(text_of(events.back(), "type"), "execution_complete");
  EXPECT_EQ(numbers_of(events), (std::vector<std::int64_t>{1, 2}));
}

}  // namespace
}  // namespace osb::execd
