#include "execd/lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace osb::execd {
namespace {

using Texts = std::vector<std::string>;

// Feeds `bytes` in pieces of `step` bytes.
Texts lines_of(std::string_view bytes, std::size_t step) {
  LineSplitter splitter;
  Texts texts;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    std::string_view piece = bytes.substr(at, step);
    while (auto line = splitter.next(piece)) texts.emplace_back(*line);
    EXPECT_TRUE(piece.empty());
  }
  if (auto line = splitter.rest()) texts.emplace_back(*line);
  EXPECT_FALSE(splitter.rest());
  return texts;
}

void expect_lines(std::string_view bytes, const Texts& wanted) {
  for (std::size_t step = 1; step <= bytes.size() + 1; ++step) EXPECT_EQ(lines_of(bytes, step), wanted) << "in pieces of " << step;
}

TEST(LineSplitter, GivesEmptyLinesAsANewline) { expect_lines("a\n\nb\n\n\nc\n", {"a", "\n", "b", "\n", "\n", "c"}); }

TEST(LineSplitter, FlushesTheUnterminatedEnd) {
  expect_lines("a\nb", {"a", "b"});
  expect_lines("x", {"x"});
  expect_lines("", {});
}

TEST(LineSplitter, TakesCarriageReturnsAsLineEnds) {
  expect_lines("a\rb\r\nc\n\rd", {"a", "b", "c", "\n", "d"});
  expect_lines("\r\n\r\n", {"\n", "\n"});
  expect_lines("a\r\r\n", {"a", "\n"});
  expect_lines("10%\r20%\r30%\r", {"10%", "20%", "30%"});
}

TEST(LineSplitter, KeepsBytesThatAreNotText) { expect_lines(std::string_view("\0\xff\n\x80", 4), {std::string("\0\xff", 2), "\x80"}); }

TEST(LineSplitter, CutsLongLinesIntoPiecesWithoutLoss) {
  std::string line(3 * LineSplitter::kMaxLine + 5, 'x');
  for (std::size_t step : {std::size_t{1000}, LineSplitter::kMaxLine, line.size() + 10}) {
    auto texts = lines_of(line + "\nend\n", step);
    ASSERT_EQ(texts.size(), 5u);
    std::string joined;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_LE(texts[i].size(), LineSplitter::kMaxLine);
      joined += texts[i];
    }
    EXPECT_EQ(joined, line);
    EXPECT_EQ(texts[4], "end");
  }
}

TEST(LineSplitter, DoesNotInventAnEmptyLineAfterALineOfExactlyTheMaximum) {
  for (std::size_t size : {LineSplitter::kMaxLine - 1, LineSplitter::kMaxLine, LineSplitter::kMaxLine + 1, 2 * LineSplitter::kMaxLine}) {
    for (std::size_t step : {std::size_t{1}, std::size_t{4096}, size + 9}) {
      auto texts = lines_of(std::string(size, 'x') + "\nz\n", step);
      ASSERT_EQ(texts.size(), (size > LineSplitter::kMaxLine ? 3u : 2u)) << size << " in pieces of " << step;
      EXPECT_EQ(texts.back(), "z");
    }
  }
}

TEST(LineSplitter, CutsBetweenCharacters) {
  std::string line;
  while (line.size() < 2 * LineSplitter::kMaxLine) line += "a\xe2\x82\xac\xf0\x9f\x98\x80";
  for (std::size_t step : {std::size_t{1}, std::size_t{7}, line.size()}) {
    std::string joined;
    for (const std::string& text : lines_of(line, step)) {
      EXPECT_NE(static_cast<unsigned char>(text.front()) & 0xC0, 0x80) << "a piece begins inside a character";
      joined += text;
    }
    EXPECT_EQ(joined, line);
  }
}

}  // namespace
}  // namespace osb::execd
