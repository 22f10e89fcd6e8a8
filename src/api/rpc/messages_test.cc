#include "api/rpc/messages.h"

#include <gtest/gtest.h>

#include "api/rpc/call.h"
#include "api/rpc/json_form.h"
#include "api/rpc/wire_form.h"
#include "base/base64.h"
#include "base/text.h"

namespace osb::api::rpc {
namespace {

ExecRequest a_request() {
  ExecRequest request;
  request.session_id = "s";
  request.argv = {"echo", "", "\xC3\xA9"};
  request.timeout_seconds = 0.5;
  request.input = std::string("\0\xFF", 2);
  request.env = {{"A", "1"}, {"B", ""}};
  request.max_output_bytes = 0;
  return request;
}

void expect_same(const ExecRequest& a, const ExecRequest& b) {
  EXPECT_EQ(a.session_id, b.session_id);
  EXPECT_EQ(a.argv, b.argv);
  EXPECT_EQ(a.timeout_seconds, b.timeout_seconds);
  EXPECT_EQ(a.input, b.input);
  EXPECT_EQ(a.env, b.env);
  EXPECT_EQ(a.max_output_bytes, b.max_output_bytes);
}

TEST(Messages, BothFormsGiveBackWhatWentIn) {
  for (auto form : {Form::binary, Form::json}) {
    auto back = decode<ExecRequest>(form, encode(form, a_request()));
    ASSERT_TRUE(back) << back.error().what();
    expect_same(*back, a_request());
  }
}

TEST(Messages, TheBinaryFormIsThatOfProtobuf) {
  // protoc --encode of: seq: 3 exit { exit_code: -1 cause: "exited" duration_ms: 1.5 }
  ExecEvent event;
  event.seq = 3;
  event.exit = ExecEnd{.exit_code = -1, .cause = "exited", .timed_out = false, .advice = {}, .duration_ms = 1.5, .error = {}};
  EXPECT_EQ(to_hex(encode(Form::binary, event)),
            "0803421c08ffffffffffffffffff0112066578697465642900000000"
            "0000f83f");
}

TEST(Messages, JsonIsThatOfProto3) {
  Session session;
  session.session_id = "abc";
  session.created_at = to_timestamp(WallTime{1'700'000'000'123'456});
  session.resources = Resources{512, 0.5, {}, -1, 7};
  session.metadata = {{"k", "v"}};
  EXPECT_EQ(encode(Form::json, session),
            R"({"sessionId":"abc","createdAt":"2023-11-14T22:13:20.123456Z",)"
            R"("resources":{"memoryMb":"512","cpuCores":0.5,"timeoutSeconds":"-1","pids":7},"metadata":{"k":"v"}})");
  auto snake = decode<CreateSessionRequest>(Form::json,
                                            R"({"resources":{"memory_mb":512,"cpuCores":"0.5","timeout_seconds":"60"},"ephemeral":null})");
  ASSERT_TRUE(snake) << snake.error().what();
  EXPECT_EQ(snake->resources->memory_mb, 512u);
  EXPECT_EQ(snake->resources->cpu_cores, 0.5);
  EXPECT_EQ(snake->resources->timeout_seconds, 60);
  EXPECT_FALSE(snake->ephemeral);
}

TEST(Messages, AnEmptyMessageIsAMessage) {
  EXPECT_TRUE(decode<ListApprovalsRequest>(Form::binary, ""));
  EXPECT_TRUE(decode<ListApprovalsRequest>(Form::json, "{}"));
  EXPECT_FALSE(decode<ListApprovalsRequest>(Form::json, ""));
}

TEST(Messages, TheLastOfAOneofCountsInTheBinaryForm) {
  TerminalInput both;
  both.data = "x";
  both.signal = "SIGINT";
  auto back = decode<TerminalInput>(Form::binary, encode(Form::binary, both));
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->data);
  EXPECT_EQ(back->signal, "SIGINT");
  auto json = decode<TerminalInput>(Form::json, R"({"data":"eA==","signal":"SIGINT"})");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().kind(), Errc::malformed);
}

TEST(Messages, UnknownFieldsAreSkippedInBinaryAndRefusedInJson) {
  std::string bytes = encode(Form::binary, a_request());
  append_bytes_field(bytes, 1000, "later");
  append_varint(bytes, 1001 << 3);
  append_varint(bytes, 7);
  auto binary = decode<ExecRequest>(Form::binary, bytes);
  ASSERT_TRUE(binary);
  expect_same(*binary, a_request());
  auto json = decode<CreateSessionRequest>(Form::json, R"({"resources":{"memroyMb":1}})");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().code(), "SESSION::UNKNOWN_FIELD");
  EXPECT_EQ(json.error().field(), "resources.memroyMb");
}

TEST(Messages, BrokenBinaryIsRefused) {
  const std::string_view kBroken[] = {
      "\x0A",  // a length is missing
      "\x0A\x05"
      "ab",                                                // cut off
      "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",      // a length of 2^64 - 1
      "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",  // a number without end
      "\x08\x01",                                          // session_id as a number
      "\x0B\x0C",                                          // a group
      "\x0F",                                              // a wire type nobody has
      "\x0A\x01\xFF",                                      // no UTF-8
      std::string_view("\x02\x00", 2),                     // field 0
  };
  for (auto bytes : kBroken) {
    auto back = decode<ExecRequest>(Form::binary, bytes);
    EXPECT_FALSE(back) << to_hex(bytes);
    if (!back) EXPECT_EQ(back.error().kind(), Errc::malformed);
  }
  EXPECT_FALSE(decode<TerminalSize>(Form::binary, "\x08\x80\x80\x80\x80\x10")) << "2^32 is no uint32";
}

TEST(Messages, BrokenJsonIsRefusedWithItsField) {
  const std::pair<std::string_view, std::string_view> kBroken[] = {
      {R"({"argv":"x"})", "argv"},
      {R"({"argv":["x",1]})", "argv[1]"},
      {R"({"timeoutSeconds":"fast"})", "timeoutSeconds"},
      {R"({"timeoutSeconds":"inf"})", "timeoutSeconds"},
      {R"({"stdin":"a"})", "stdin"},
      {R"({"stdin":"a b="})", "stdin"},
      {R"({"env":{"A":1}})", "env.A"},
      {R"({"maxOutputBytes":-1})", "maxOutputBytes"},
      {R"({"maxOutputBytes":1.5})", "maxOutputBytes"},
      {R"({"maxOutputBytes":"18446744073709551616"})", "maxOutputBytes"},
      {R"({"sessionId":"a","session_id":"b"})", "session_id"},
  };
  for (auto [text, field] : kBroken) {
    auto back = decode<ExecRequest>(Form::json, text);
    ASSERT_FALSE(back) << text;
    EXPECT_EQ(back.error().field(), field) << text;
  }
  for (auto text : {"[]", "1", "null", "{", "{} x"}) EXPECT_FALSE(decode<ExecRequest>(Form::json, text)) << text;
  EXPECT_FALSE(decode<ExecRequest>(Form::json, std::string(100, '[') + std::string(100, ']')));
}

TEST(Messages, WhatIsTooLongIsNotRead) {
  std::string bytes;
  append_bytes_field(bytes, 2, std::string(kMaxRequestBytes, 'x'));
  auto back = decode<ExecRequest>(Form::binary, bytes);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().kind(), Errc::too_large);
}

TEST(Messages, Base64HasBothAlphabetsAndPaddingAsTheSenderLikes) {
  EXPECT_EQ(base64("\xFB\xFF"), "+/8=");
  EXPECT_EQ(base64_unpadded("\xFB\xFF"), "+/8");
  for (auto text : {"+/8=", "-_8=", "+/8", "-_8"}) EXPECT_EQ(from_base64(text), "\xFB\xFF") << text;
  for (auto text : {"A", "AAAAA", "A=AA", "A*AA", "===="}) EXPECT_FALSE(from_base64(text)) << text;
  EXPECT_EQ(from_base64(""), "");
}

TEST(Messages, EveryMethodOfTheContractIsServedInItsShape) {
  for (const auto& shape : method_shapes()) {
    const Method* method = find_method(shape.name);
    ASSERT_NE(method, nullptr) << shape.name;
    EXPECT_EQ(method->client_streams, shape.client_streams) << shape.name;
    EXPECT_EQ(method->server_streams, shape.server_streams) << shape.name;
  }
  EXPECT_EQ(find_method("Nothing"), nullptr);
}

}  // namespace
}  // namespace osb::api::rpc
