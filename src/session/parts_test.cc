// The parts of the session service that need no sandbox: the queue of idle ones, execd's events, frames.
#include <gtest/gtest.h>

#include "base/text.h"
#include "session/execd_events.h"
#include "session/frames.h"
#include "session/idle.h"

namespace osb::session {
namespace {

using Names = std::vector<std::string>;

TEST(IdleQueue, KnowsWhoWasLeftAloneFirst) {
  IdleQueue queue;
  queue.add("a", 10);
  queue.add("b", 20);
  EXPECT_EQ(queue.oldest(), 10);
  queue.begin("a");
  EXPECT_EQ(queue.oldest(), 20) << "one in use is not idle";
  EXPECT_EQ(queue.take(25), Names{"b"});
  EXPECT_FALSE(queue.oldest());
  queue.begin("a");
  queue.end("a", 30);
  EXPECT_FALSE(queue.oldest()) << "it is used twice";
  queue.end("a", 40);
  EXPECT_EQ(queue.oldest(), 40);
  queue.end("a", 50);
  queue.begin("unknown");
  queue.end("unknown", 50);
  EXPECT_EQ(queue.take(39), Names{});
  queue.remove("a");
  EXPECT_EQ(queue.size(), 0u);
}

ExecEvent only(EventReader& reader) {
  auto event = reader.next();
  EXPECT_TRUE(event && *event);
  return event && *event ? **std::move(event) : ExecEvent{};
}

TEST(ExecdEvents, AreReadFromPiecesOfAnySize) {
  std::string run(32, 'a');
  std::string text =
      cat(R"({"type":"init","text":")", run, R"(","run_id":")", run, R"(","seq":1})", "\n\n", R"({"type":"ping","text":"pong"})", "\n\n",
          R"({"type":"stdout","text":"a\n","seq":2})", "\n\n", R"({"type":"stderr","base64":"/w==","seq":3})", "\n\n",
          R"({"type":"truncated","missed":4})", "\n\n", R"({"type":"news","of":"later"})", "\n\nnot json\n",
          R"({"type":"execution_complete","execution_time":7,"seq":8})", "\n\n");
  EventReader reader("s", false);
  std::vector<ExecEvent> events;
  for (char c : text) {
    reader.feed({&c, 1});
    auto event = reader.next();
    ASSERT_TRUE(event);
    if (*event) events.push_back(**event);
  }
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(std::get<Started>(events[0].what).exec_id, run);
  EXPECT_TRUE(std::holds_alternative<Silence>(events[1].what));
  EXPECT_EQ(std::get<Output>(events[2].what).bytes, "a\n");
  EXPECT_EQ(std::get<Output>(events[3].what).bytes, "\xff");
  EXPECT_EQ(std::get<Lost>(events[4].what).events, 4u);
  EXPECT_EQ(std::get<Exit>(events[5].what).duration_ms, 7);
  EXPECT_EQ(reader.last_seq(), 8u);
}

TEST(ExecdEvents, EndsAreTheShells) {
  struct Row {
    const char* event;
    int code;
    Cause cause;
  };
  for (const Row& row :
       {Row{R"("evalue":"3"},"cause":"exited")", 3, Cause::exited}, Row{R"("evalue":"137"},"cause":"signalled")", 137, Cause::signalled},
        Row{R"("evalue":"-1"},"cause":"timed_out")", 124, Cause::timed_out},
        Row{R"("evalue":"143"},"cause":"signalled","interrupted":true)", 143, Cause::interrupted},
        Row{R"("evalue":"137"},"cause":"out_of_memory")", 137, Cause::out_of_memory},
        Row{R"("evalue":"nope: no such file"},"cause":"not_found")", 127, Cause::exited}}) {
    EventReader reader("s", false);
    reader.feed(cat(R"({"type":"error","error":{"ename":"CommandExecError",)", row.event, ",\"seq\":2}\n"));
    auto event = only(reader);
    EXPECT_EQ(std::get<Exit>(event.what).exit_code, row.code) << row.event;
    EXPECT_EQ(std::get<Exit>(event.what).cause, row.cause) << row.event;
  }
  EventReader reader("s", true);
  reader.feed("{\"type\":\"error\",\"error\":{\"ename\":\"ZeroDivisionError\",\"evalue\":\"by zero\",\"traceback\":[\"x\"]}}\n");
  auto exit = std::get<Exit>(only(reader).what);
  EXPECT_EQ(exit.exit_code, 1);
  EXPECT_EQ(exit.error->name, "ZeroDivisionError");
}

TEST(ExecdEvents, ALineWithoutEndIsNoEvent) {
  EventReader reader("s", false);
  reader.feed(std::string(6u << 20, 'x'));
  EXPECT_FALSE(reader.next());
}

TEST(ExecIds, NameTheContextOfCode) {
  std::string run(32, '1'), context(32, 'f');
  EXPECT_EQ(parse_exec_id(exec_id_of(run, ""))->context, "");
  EXPECT_EQ(parse_exec_id(exec_id_of(run, context))->context, context);
  for (std::string bad : {std::string(), std::string("x"), run + ".", run + "." + run + "0", run + "/../..", std::string(32, 'G')})
    EXPECT_FALSE(parse_exec_id(bad)) << bad;
}

TEST(Frames, AreCutAndPutTogether) {
  auto frames = input_frames(std::string(70'000, 'x'));
  EXPECT_EQ(frames.size(), 70'000u + 10);
  FrameReader reader;
  auto sent = make_frame(FrameType::output, "hello") + make_frame(FrameType::end, "{}");
  for (char c : sent.substr(0, 9)) reader.feed({&c, 1});
  EXPECT_FALSE(*reader.next());
  reader.feed(sent.substr(9));
  EXPECT_EQ((*reader.next())->payload, "hello");
  EXPECT_EQ((*reader.next())->type, FrameType::end);
  reader.feed(std::string("\x0a\xff\xff\xff\xff", 5));
  EXPECT_FALSE(reader.next());
}

}  // namespace
}  // namespace osb::session
