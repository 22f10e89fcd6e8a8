#include "cli/frames.h"

#include <gtest/gtest.h>

namespace osb::cli {
namespace {

std::string framed(FrameType type, std::string_view payload) {
  std::string out;
  append_frame(out, type, payload);
  return out;
}

TEST(Frames, HaveATypeALengthAndAPayload) {
  EXPECT_EQ(framed(FrameType::input, "ab"), std::string("\0\0\0\0\2ab", 7));
  EXPECT_EQ(framed(FrameType::input_end, ""), std::string("\1\0\0\0\0", 5));
  EXPECT_EQ(framed(FrameType::output, std::string(65536, 'x')).substr(0, 5), std::string("\x0a\0\1\0\0", 5));
}

TEST(Frames, AreFoundHoweverTheBytesArrive) {
  auto bytes = framed(FrameType::output, "one") + framed(FrameType::error_output, "") + framed(FrameType::end, "{}");
  for (std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{4}, bytes.size()}) {
    FrameDecoder decoder;
    std::string seen;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      decoder.feed(std::string_view(bytes).substr(at, step));
      for (;;) {
        auto frame = decoder.next();
        ASSERT_TRUE(frame);
        if (!*frame) break;
        seen += std::to_string(static_cast<int>((*frame)->type)) + ":" + std::string((*frame)->payload) + ";";
      }
    }
    EXPECT_EQ(seen, "10:one;11:;12:{};") << step;
    EXPECT_TRUE(decoder.empty());
  }
}

TEST(Frames, FromASandboxAreNotTrusted) {
  FrameDecoder long_one;
  long_one.feed(std::string("\x0a\0\1\0\1", 5));
  EXPECT_FALSE(long_one.next());
  FrameDecoder of_ours;
  of_ours.feed(std::string("\0\0\0\0\0", 5));
  EXPECT_FALSE(of_ours.next());
}

TEST(Ending, IsReadAndBounded) {
  auto ending = parse_ending(R"({"exit_code":137,"signal":9,"cause":"signalled","advice":"x"})");
  ASSERT_TRUE(ending);
  EXPECT_EQ(ending->exit_code, 137);
  EXPECT_EQ(ending->signal, 9);
  EXPECT_EQ(ending->cause, "signalled");
  EXPECT_EQ(parse_ending(R"({"exit_code":99999999999})")->exit_code, 255);
  EXPECT_EQ(parse_ending(R"({"exit_code":-1})")->exit_code, 255);
  EXPECT_FALSE(parse_ending("[]"));
  EXPECT_FALSE(parse_ending("{"));
}

}  // namespace
}  // namespace osb::cli
