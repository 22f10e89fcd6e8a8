#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "cli/address.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/sanitise.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace osb::cli {
namespace {

using std::chrono::seconds;

TEST(Sanitise, LeavesOrdinaryTextAlone) { EXPECT_EQ(sanitise("plain text, ümlaut, 漢字, 🙂"), "plain text, ümlaut, 漢字, 🙂"); }

TEST(Sanitise, ShowsWhatWouldMoveACursorOrForgeALine) {
  EXPECT_EQ(sanitise("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(sanitise("line\nnext\ttab\r"), "line\\nnext\\ttab\\r");
  EXPECT_EQ(sanitise(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(sanitise("\xC2\x9B\x31m"), "\\x9b1m");
  EXPECT_EQ(sanitise("\xE2\x80\xA8\xE2\x80\xAE"), "\\u{2028}\\u{202e}");
}

TEST(Sanitise, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(sanitise("\xFF\xC0\xAF\xED\xA0\x80"), "\\xff\\xc0\\xaf\\xed\\xa0\\x80");
  EXPECT_EQ(sanitise("cut \xE6\xBC"), "cut \\xe6\\xbc");
}

TEST(Table, LinesUpColumnsAndEndsLinesWithoutSpaces) {
  Table table({"ID", "NAME"});
  table.row({"1", "ü"});
  table.row({"longer", ""});
  EXPECT_EQ(table.render(), "ID      NAME\n1       ü\nlonger  -\n");
}

TEST(Table, SanitisesCells) {
  Table table({"A"});
  table.row({"x\ny"});
  EXPECT_EQ(table.render(), "A\nx\\ny\n");
}

TEST(Duration, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(*parse_duration("90"), Millis(90'000));
  EXPECT_EQ(*parse_duration("2.5"), Millis(2500));
  EXPECT_EQ(*parse_duration("500ms"), Millis(500));
  EXPECT_EQ(*parse_duration("30m"), Millis(1'800'000));
  EXPECT_EQ(*parse_duration("1h30m45s"), Millis(5'445'000));
  EXPECT_EQ(*parse_duration("2d"), Millis(172'800'000));
}

TEST(Duration, RefusesNonsenseAndEdges) {
  for (auto text :
       {"", "0", "0s", "-1s", "-5", "5x", "m", "1h2", "1e9", "nan", "inf", "9999999999d", "99999999999999999999", " 5s", "1.", "1.5h"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Duration, IsShownInTwoUnitsAtMost) {
  EXPECT_EQ(format_duration(seconds(45)), "45s");
  EXPECT_EQ(format_duration(seconds(725)), "12m");
  EXPECT_EQ(format_duration(seconds(3 * 3600 + 5 * 60)), "3h05m");
  EXPECT_EQ(format_duration(seconds(2 * 86400 + 4 * 3600)), "2d04h");
}

TEST(When, LooksBothWays) {
  auto now = *parse_rfc3339("2026-01-02T03:04:05Z");
  EXPECT_EQ(format_when("2026-01-02T03:02:05Z", now), "2m ago");
  EXPECT_EQ(format_when("2026-01-02T03:04:50.5Z", now), "in 45s");
  EXPECT_EQ(format_when("", now), "-");
}

TEST(Bytes, HaveAUnit) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(64ull << 20), "64 MiB");
  EXPECT_EQ(format_bytes(~0ull), "16 EiB");
}

TEST(Address, IsReadInEveryUsualForm) {
  EXPECT_EQ(*parse_address("unix:///run/x.sock"), (Address{true, "/run/x.sock", 0}));
  EXPECT_EQ(*parse_address("/run/x.sock"), (Address{true, "/run/x.sock", 0}));
  EXPECT_EQ(*parse_address("http://127.0.0.1:9000/"), (Address{false, "127.0.0.1", 9000}));
  EXPECT_EQ(*parse_address("localhost"), (Address{false, "localhost", 8080}));
  EXPECT_EQ(*parse_address("http://[::1]:81"), (Address{false, "::1", 81}));
  EXPECT_EQ(parse_address("[::1]:81")->authority(), "[::1]:81");
}

TEST(Address, RefusesWhatItCannotReach) {
  for (auto text : {"unix://relative", "http://", "host:0", "host:99999", "host:x", "user@host:1", "http://h/path", "[::1:80"})
    EXPECT_FALSE(parse_address(text)) << text;
  auto tls = parse_address("https://example.com");
  ASSERT_FALSE(tls);
  EXPECT_EQ(tls.error().kind(), Errc::unsupported);
}

TEST(Pretty, IsAsciiAndIndented) {
  boost::json::value value = {{"a", {1, "ü\n"}}, {"b", boost::json::object{}}};
  EXPECT_EQ(pretty(value), "{\n  \"a\": [\n    1,\n    \"\\u00fc\\n\"\n  ],\n  \"b\": {}\n}\n");
}

TEST(Colour, NeverGoesWhereNobodyLooks) {
  ::unsetenv("CLICOLOR_FORCE");
  ::unsetenv("NO_COLOR");
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  EXPECT_FALSE(colours_on(pipe[1]));
  ::setenv("CLICOLOR_FORCE", "1", 1);
  EXPECT_TRUE(colours_on(pipe[1]));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(colours_on(pipe[1]));
  ::unsetenv("CLICOLOR_FORCE");
  ::unsetenv("NO_COLOR");
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(ExitStatus, TellsWhoseFaultItWas) {
  EXPECT_EQ(exit_status_for(usage_error("x"), &kRun), kExitUsage);
  EXPECT_EQ(exit_status_for(Error(Errc::unauthenticated, "x"), &kRun), kExitAuth);
  EXPECT_EQ(exit_status_for(Error(Errc::internal, "x"), &kRun), kExitOurs);
  EXPECT_EQ(exit_status_for(Error(Errc::internal, "x"), &kExec), kExitOurs);
  EXPECT_EQ(exit_status_for(Error(Errc::not_found, "x"), &kInspect), kExitFailure);
}

}  // namespace
}  // namespace osb::cli
