#include "execd/events.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/clock.h"

namespace osb::execd {
namespace {

// The one event in `text`, which must have the exact shape of the stream.
boost::json::object only_event(const std::string& text) {
  EXPECT_TRUE(text.ends_with("}\n\n")) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 2) << "one line";
  for (char c : text.substr(0, text.size() - 2)) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << text;
  auto event = boost::json::parse(text).as_object();
  EXPECT_NEAR(static_cast<double>(event.at("timestamp").as_int64()), static_cast<double>(wall_now_millis()), 5000.0);
  return event;
}

TEST(Events, AreOneLineOfPlainJsonAndAnEmptyLine) {
  std::string out;
  events::append_init(out, 1, "6f1d0c0a4b0d4f0e9a52a0c3b8e1f7d2", "00112233445566778899aabbccddeeff");
  auto init = only_event(out);
  EXPECT_EQ(init.at("type"), "init");
  EXPECT_EQ(init.at("text"), "6f1d0c0a4b0d4f0e9a52a0c3b8e1f7d2");
  EXPECT_EQ(init.at("run_id"), "00112233445566778899aabbccddeeff");
  EXPECT_EQ(init.at("seq"), 1);
  out.clear();
  events::append_ping(out);
  EXPECT_FALSE(only_event(out).contains("seq"));
  EXPECT_EQ(only_event(out).at("text"), "pong");
}

TEST(Events, EscapeWhatLineReadersStumbleOver) {
  std::string out;
  events::append_output(out, 7, "stdout", "caf\xc3\xa9 \xe2\x80\xa8 \xc2\x85 \xff \"q\" \\ \x1b[0m");
  auto event = only_event(out);
  EXPECT_EQ(event.at("text"), "caf\xc3\xa9 \xe2\x80\xa8 \xc2\x85 \xef\xbf\xbd \"q\" \\ \x1b[0m");
}

TEST(Events, CompletionAlwaysHasATime) {
  std::string out;
  events::append_complete(out, 1, 0);
  EXPECT_EQ(only_event(out).at("execution_time"), 0);
}

TEST(Events, ErrorsCarryCodeCauseAndAdvice) {
  std::string out;
  events::append_error(out, 1, {.cause = Cause::not_found, .code = 127}, 5);
  auto event = only_event(out);
  EXPECT_EQ(event.at("error").at("ename"), "CommandExecError");
  EXPECT_EQ(event.at("error").at("evalue"), "127");
  EXPECT_EQ(event.at("error").at("traceback").as_array().size(), 1u);
  EXPECT_EQ(event.at("cause"), "not_found");
  EXPECT_TRUE(event.contains("advice"));
}

TEST(ExitStatus, GivesClientsANumberForEveryEnd) {
  ExitStatus timed_out{.cause = Cause::timed_out, .code = 137, .signal = 9};
  ExitStatus killed{.cause = Cause::signalled, .code = 139, .signal = 11};
  EXPECT_EQ(wire_code(timed_out), -1);
  EXPECT_EQ(wire_code(killed), 139);
  EXPECT_EQ(describe(killed), "killed by signal 11 (SIGSEGV)");
  EXPECT_EQ(describe({.code = 3}), "exit status 3");
  EXPECT_FALSE(failed({}));
  EXPECT_TRUE(failed({.interrupted = true})) << "an interrupted command is no success, whatever it exits with";
}

}  // namespace
}  // namespace osb::execd
