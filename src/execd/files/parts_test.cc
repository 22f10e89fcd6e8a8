// The parts of the file API that need no file.
#include <gtest/gtest.h>

#include "base/text.h"
#include "execd/files/glob.h"
#include "execd/files/info.h"
#include "execd/files/paths.h"
#include "execd/files/range.h"
#include "execd/files/replace.h"
#include "http/multipart.h"

namespace osb::execd::files {
namespace {

using http::Multipart;

bool matches(std::string_view pattern, std::string_view name) {
  auto glob = Glob::parse(pattern);
  return glob && glob->matches(name);
}

TEST(FilesGlob, knows_the_usual_signs) {
  EXPECT_TRUE(matches("*.py", "a.py"));
  EXPECT_FALSE(matches("*.py", "a.pyc"));
  EXPECT_TRUE(matches("**", ".hidden"));
  EXPECT_TRUE(matches("?.txt", "å.txt"));
  EXPECT_FALSE(matches("?.txt", "ab.txt"));
  EXPECT_TRUE(matches("[a-cx]1", "b1"));
  EXPECT_FALSE(matches("[!a-c]1", "b1"));
  EXPECT_TRUE(matches("[]a]", "]"));
  EXPECT_TRUE(matches("\\*", "*"));
  EXPECT_FALSE(matches("\\*", "x"));
  EXPECT_TRUE(matches("", ""));
}

TEST(FilesGlob, knows_choices_and_their_opposite) {
  EXPECT_TRUE(matches("{a,b{c,d}}.txt", "bd.txt"));
  EXPECT_FALSE(matches("{a,b}.txt", "c.txt"));
  EXPECT_TRUE(matches("!(*.py)", "a.txt"));
  EXPECT_FALSE(matches("!(*.py|*.txt)", "a.txt"));
  EXPECT_TRUE(matches("a!(b)c", "axc"));
  EXPECT_FALSE(matches("a!(b)c", "abc"));
  EXPECT_TRUE(matches("!x", "!x")) << "without a bracket it is a sign like any other";
}

TEST(FilesGlob, refuses_what_does_not_close_or_is_nested_too_deeply) {
  for (auto pattern : {"[a", "{a,b", "!(a", "a\\", "!(a!(b))"}) EXPECT_FALSE(Glob::parse(pattern)) << pattern;
  EXPECT_FALSE(Glob::parse(std::string(20, '{') + std::string(20, '}')));
  EXPECT_FALSE(Glob::parse(std::string(Glob::kMaxPattern + 1, 'a')));
  EXPECT_TRUE(Glob::parse("{{{{a}}}}"));
}

TEST(FilesGlob, patterns_that_blow_up_elsewhere_are_answered) {
  std::string name(255, 'a');
  std::string stars;
  std::string choices;
  for (int i = 0; i < 40; ++i) stars += "*a";
  for (int i = 0; i < 100; ++i) choices += "{a,aa}";
  EXPECT_FALSE(matches(stars + "b", name));
  EXPECT_TRUE(matches(stars, name));
  EXPECT_FALSE(matches(choices + "b", name));
  EXPECT_TRUE(matches(choices + "*", name));
}

TEST(FilesPaths, clean_paths_stay_below_the_root) {
  EXPECT_EQ(clean("/a//b/./c/../d/"), "/a/b/d");
  EXPECT_EQ(clean("/../../etc"), "/etc");
  EXPECT_EQ(clean("/"), "/");
  EXPECT_EQ(clean("/a/../.."), "/");
}

TEST(FilesInfo, a_mode_is_its_octal_digits) {
  EXPECT_EQ(mode_number(0100644), 644);
  EXPECT_EQ(mode_number(0040007), 7);
  EXPECT_EQ(mode_number(06755), 755);
}

// ---- ranges

TEST(FilesRange, serves_the_first_of_the_ranges) {
  auto range = parse_range("bytes=0-9", 100);
  ASSERT_TRUE(range);
  EXPECT_TRUE(range->partial && range->first == 0 && range->length == 10);
  range = parse_range("bytes=90-, 0-1", 100);
  ASSERT_TRUE(range);
  EXPECT_TRUE(range->first == 90 && range->length == 10);
  range = parse_range("bytes=-200", 100);
  ASSERT_TRUE(range);
  EXPECT_TRUE(range->first == 0 && range->length == 100);
  range = parse_range("bytes=5-18446744073709551616", 100);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->length, 95u);
  EXPECT_FALSE(parse_range("", 100)->partial);
  EXPECT_FALSE(parse_range("lines=1-2", 100)->partial) << "another unit is no range of ours";
}

TEST(FilesRange, says_when_no_byte_is_meant) {
  for (auto text :
       {"bytes=100-", "bytes=-0", "bytes=5-1", "bytes=a-b", "bytes=", "bytes=1", "bytes", "bytes=--1", "bytes=18446744073709551616-"})
    EXPECT_FALSE(parse_range(text, 100)) << text;
  EXPECT_FALSE(parse_range("bytes=0-", 0));
}

TEST(FilesRange, a_name_cannot_end_a_header) {
  EXPECT_EQ(content_disposition("a.txt"), "attachment; filename=\"a.txt\"");
  EXPECT_EQ(content_disposition("a\"b\\c"), "attachment; filename=\"a\\\"b\\\\c\"");
  auto hostile = content_disposition("x\r\nSet-Cookie: y");
  EXPECT_EQ(hostile.find_first_of("\r\n"), hostile.npos);
  EXPECT_NE(content_disposition("å").find("filename*=UTF-8''%C3%A5"), std::string::npos);
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

// ---- multipart

// "name:content" of each part, read in steps of `step` bytes; "failed" or "cut" at the end when it is.
std::string parts_of(std::string_view body, std::size_t step) {
  Multipart parser("B");
  std::string out;
  bool ended = false;
  for (std::size_t at = 0; at < body.size(); at += step) {
    std::string_view input = body.substr(at, step);
    while (!input.empty()) {
      auto event = parser.next(input);
      if (event.kind == Multipart::Kind::part) out += parser.name() + ":";
      if (event.kind == Multipart::Kind::data) out += event.data;
      if (event.kind == Multipart::Kind::part_end) out += "|";
      if (event.kind == Multipart::Kind::end) ended = true;
      if (event.kind == Multipart::Kind::failed) return out + "failed";
    }
  }
  return ended ? out : out + "cut";
}

TEST(FilesMultipart, reads_parts_however_they_are_cut) {
  std::string body =
      "preamble\r\n--B \r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"name\"\r\n\r\n{}\r\n--B\r\n"
      "content-disposition: form-data; filename=\"a;name=x\"; name=file\r\nContent-Type: x\r\n\r\n\r\n--\r\n-\r\r\n--C\r\n--B\r\n"
      "Content-Disposition: form-data; name=\"e\"\r\n\r\n\r\n--B--\r\nepilogue";
  for (std::size_t step = 1; step <= body.size(); ++step)
    EXPECT_EQ(parts_of(body, step), "metadata:{}|file:\r\n--\r\n-\r\r\n--C|e:|") << step;
}

TEST(FilesMultipart, begins_at_once_or_not_at_all) {
  EXPECT_EQ(parts_of("--B\r\n\r\nx\r\n--B--", 3), ":x|");
  EXPECT_EQ(parts_of("", 1), "cut");
  EXPECT_EQ(parts_of("--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx", 2), "a:xcut");
  EXPECT_EQ(parts_of("--Bx\r\n\r\n", 5), "failed") << "a longer boundary is another one";
  EXPECT_EQ(parts_of("--B" + std::string(100, ' '), 7), "failed");
  EXPECT_EQ(parts_of("--B\r\n" + std::string(Multipart::kMaxHead + 1, 'h'), 1000), "failed");
}

TEST(FilesMultipart, a_boundary_is_one_of_the_standard) {
  EXPECT_EQ(Multipart::boundary_of("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(Multipart::boundary_of("Multipart/Form-Data; charset=x; BOUNDARY=\"a b?\""), "a b?");
  EXPECT_TRUE(Multipart::boundary_of(cat("multipart/form-data; boundary=", std::string(70, 'x'))));
  for (auto& wrong :
       {std::string("multipart/form-data"), std::string("application/json; boundary=a"), std::string("multipart/form-data; boundary="),
        std::string("multipart/form-data; boundary=\"a\rb\""), cat("multipart/form-data; boundary=", std::string(71, 'x'))})
    EXPECT_FALSE(Multipart::boundary_of(wrong)) << wrong;
}

// ---- replace

std::string replaced(std::string_view text, std::string old, std::string replacement, std::size_t step, std::uint64_t& count) {
  Replacer replacer(std::move(old), std::move(replacement));
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += step) replacer.feed(text.substr(at, step), out);
  replacer.finish(out);
  count = replacer.count();
  return out;
}

TEST(FilesReplace, finds_every_occurrence_across_pieces) {
  for (std::size_t step = 1; step < 8; ++step) {
    std::uint64_t count = 0;
    EXPECT_EQ(replaced("aabaabaaab", "aab", "<x>", step, count), "<x><x>a<x>");
    EXPECT_EQ(count, 3u);
    EXPECT_EQ(replaced("aaaa", "aaa", "b", step, count), "ba");
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(replaced("ababab", "abc", "", step, count), "ababab");
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(replaced("aXa", "a", "aa", step, count), "aaXaa") << "what was put in is not looked at again";
  }
}

TEST(FilesReplace, a_text_made_to_be_slow_is_not) {
  std::uint64_t count = 0;
  std::string text(4'000'000, 'a');
  std::string old = std::string(500'000, 'a') + "b";
  EXPECT_EQ(replaced(text, old, "", 65536, count).size(), text.size());
  EXPECT_EQ(count, 0u);
}

}  // namespace
}  // namespace osb::execd::files
