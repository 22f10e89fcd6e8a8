#include "execd/frames.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

std::string client_frames() {
  return make_frame(FrameType::input, "hello") + make_frame(FrameType::signal, "\x02") + make_frame(FrameType::input_end, "");
}

TEST(Frames, ComeBackWholeFromPiecesOfAnySize) {
  std::string bytes = client_frames();
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    FrameDecoder decoder;
    std::vector<std::pair<FrameType, std::string>> seen;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      decoder.feed(std::string_view(bytes).substr(at, step));
      for (;;) {
        auto frame = decoder.next();
        ASSERT_TRUE(frame);
        if (!*frame) break;
        seen.emplace_back((*frame)->type, (*frame)->payload);
      }
    }
    ASSERT_EQ(seen.size(), 3u) << "in pieces of " << step;
    EXPECT_EQ(seen[0], std::pair(FrameType::input, std::string("hello")));
    EXPECT_EQ(seen[1], std::pair(FrameType::signal, std::string("\x02")));
    EXPECT_EQ(seen[2], std::pair(FrameType::input_end, std::string()));
  }
}

TEST(Frames, HaveABigEndianLength) {
  EXPECT_EQ(make_frame(FrameType::output, std::string(258, 'x')).substr(0, 5), std::string("\x0a\x00\x00\x01\x02", 5));
}

TEST(Frames, BadOnesEndTheConversation) {
  auto refused = [](std::string_view bytes) {
    FrameDecoder decoder;
    decoder.feed(bytes);
    return !decoder.next();
  };
  EXPECT_TRUE(refused(std::string_view("\x03\0\0\0\0", 5))) << "unknown type";
  EXPECT_TRUE(refused(std::string_view("\x0a\0\0\0\0", 5))) << "a type only execd sends";
  EXPECT_TRUE(refused(std::string_view("\0\0\x01\0\x01", 5))) << "65537 bytes";
  EXPECT_TRUE(refused(std::string_view("\0\xff\xff\xff\xff", 5)));
  EXPECT_TRUE(refused(std::string_view("\x01\0\0\0\x01x", 6))) << "an end with bytes";
  EXPECT_TRUE(refused(std::string_view("\x02\0\0\0\x02xx", 7))) << "two signals";
  EXPECT_FALSE(refused(std::string_view("\0\0\x01\0\0", 5))) << "65536 bytes are fine";
}

TEST(Frames, TheEndSaysHow) {
  EXPECT_EQ(ending_json({}), R"({"exit_code":0,"cause":"exited"})");
  EXPECT_EQ(ending_json({.cause = Cause::signalled, .code = 143, .signal = 15}), R"({"exit_code":143,"signal":15,"cause":"signalled"})");
  EXPECT_TRUE(ending_json({.cause = Cause::timed_out, .code = 137, .signal = 9})
                  .starts_with(R"({"exit_code":124,"signal":9,"cause":"timed_out","advice":")"));
}

}  // namespace
}  // namespace osb::execd
