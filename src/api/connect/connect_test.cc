// Connect, gRPC-Web and the relay over real sockets, in front of a service made of memory.
#include <gtest/gtest.h>

#include "api/connect/door.h"
#include "api/connect/envelope.h"
#include "api/rpc/fake_service.h"
#include "api/rpc/json_form.h"
#include "base/base64.h"
#include "base/log.h"
#include "model/json.h"
#include "proxy/test_loop.h"

namespace osb::api::connect {
namespace {

using namespace std::chrono_literals;
using rpc::Form;

struct Frame {
  int flags;
  std::string bytes;
};

std::vector<Frame> frames_of(std::string_view body) {
  std::vector<Frame> out;
  while (body.size() >= 5) {
    std::size_t length = 0;
    for (std::size_t i = 1; i < 5; ++i) length = length << 8 | static_cast<std::uint8_t>(body[i]);
    if (body.size() - 5 < length) break;
    out.push_back({static_cast<std::uint8_t>(body[0]), std::string(body.substr(5, length))});
    body.remove_prefix(5 + length);
  }
  EXPECT_TRUE(body.empty()) << "a frame is cut off";
  return out;
}

Task<void> ask(http::ClientConnection& connection, http::ClientRequest request) {
  [[maybe_unused]] auto head = co_await connection.start(std::move(request));
}

class Connect : public testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::error);
    service_.emplace(loop_.io.get_executor());
    server_.emplace(loop_.io, http::Limits{}, [this](http::Request& request, http::Responder& responder) {
      Caller caller{"me", true, request.request_id};
      if (request.headers.has("Upgrade")) return serve_relay(*service_, caller, request, responder);
      return serve(*service_, caller, request, responder, {});
    });
    auto port = server_->listen_tcp("127.0.0.1", 0);
    ASSERT_TRUE(port);
    target_ = http::Target::tcp("127.0.0.1", *port);
  }
  void TearDown() override { loop_.run(server_->stop(0s)); }

  http::ClientRequest request(std::string_view method, std::string_view type, std::string body) {
    http::ClientRequest out;
    out.method = "POST";
    out.target = cat("/", rpc::service_name(), "/", method);
    out.headers.add("Content-Type", std::string(type));
    out.body = std::move(body);
    return out;
  }
  http::ClientResponse post(std::string_view method, std::string_view type, std::string body) {
    return send(request(method, type, std::move(body)));
  }
  http::ClientResponse send(http::ClientRequest outgoing) {
    auto got = loop_.run(http::fetch(target_, std::move(outgoing), 10s, 64u << 20));
    EXPECT_TRUE(got) << got.error().what();
    return got ? *got : http::ClientResponse{};
  }
  std::string make_session() {
    auto made = rpc::decode<rpc::Session>(Form::binary, post("CreateSession", "application/proto", "").body);
    EXPECT_TRUE(made);
    return made->session_id;
  }
  std::string exec_message(std::string command) {
    rpc::ExecRequest message;
    message.session_id = make_session();
    message.command = std::move(command);
    return rpc::encode(Form::binary, message);
  }

  proxy::TestLoop loop_;
  std::optional<rpc::FakeService> service_;
  std::optional<http::Server> server_;
  http::Target target_ = http::Target::tcp("127.0.0.1", 0);
};

TEST_F(Connect, AUnaryCallAnswersInTheFormItWasAsked) {
  auto json = post("CreateSession", "application/json", R"({"image":"host","resources":{"memoryMb":"64"},"idempotencyKey":"k"})");
  EXPECT_EQ(json.status, 200);
  EXPECT_EQ(json.headers.get("Content-Type"), "application/json");
  auto session = rpc::decode<rpc::Session>(Form::json, json.body);
  ASSERT_TRUE(session) << json.body;
  EXPECT_EQ(session->state, "running");
  EXPECT_EQ(service_->last_create.resources.memory_mb, 64u);
  EXPECT_EQ(service_->last_key, "k");
  rpc::GetSessionRequest get{session->session_id};
  auto binary = post("GetSession", "application/proto", rpc::encode(Form::binary, get));
  EXPECT_EQ(binary.headers.get("Content-Type"), "application/proto");
  auto back = rpc::decode<rpc::Session>(Form::binary, binary.body);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->session_id, session->session_id);
  EXPECT_EQ(back->usage->pids, 3u);
}

TEST_F(Connect, AnErrorHasItsCodeFieldAndAdvice) {
  auto missing = post("GetSession", "application/json", R"({"sessionId":"00000000000000000000000000"})");
  EXPECT_EQ(missing.status, 404);
  auto body = parse_json_object(missing.body);
  ASSERT_TRUE(body) << missing.body;
  EXPECT_EQ(body->at("code").as_string(), "not_found");
  auto& detail = body->at("details").as_array().at(0).as_object();
  EXPECT_EQ(detail.at("type").as_string(), "google.rpc.ErrorInfo");
  EXPECT_EQ(detail.at("debug").as_object().at("reason").as_string(), "SESSION::NOT_FOUND");
  auto full = post("CreateSession", "application/json", R"({"image":"full"})");
  EXPECT_EQ(full.status, 429);
  EXPECT_NE(full.body.find("End one."), std::string::npos);
  auto unknown = post("CreateSession", "application/json", R"({"imgae":"host"})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_NE(unknown.body.find("SESSION::UNKNOWN_FIELD"), std::string::npos);
  auto none = post("Nothing", "application/json", "{}");
  EXPECT_EQ(none.status, 501);
}

TEST_F(Connect, AFailureOfOursSaysOnlyThatItIsOne) {
  auto answer = post("Exec", "application/proto", exec_message("break"));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body.find("secret"), std::string::npos);
}

TEST_F(Connect, ACommandAnswersWithWhatItSaid) {
  rpc::ExecRequest message;
  message.session_id = make_session();
  message.argv = {"seven"};
  message.input = "in";
  auto answer = post("Exec", "application/proto", rpc::encode(Form::binary, message));
  auto result = rpc::decode<rpc::ExecResult>(Form::binary, answer.body);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out, "seven\n");
  EXPECT_EQ(result->err, "in");
  EXPECT_EQ(result->end->exit_code, 7);
  message.max_output_bytes = 3;
  auto cut = rpc::decode<rpc::ExecResult>(Form::binary, post("Exec", "application/proto", rpc::encode(Form::binary, message)).body);
  EXPECT_EQ(cut->out, "sev");
  EXPECT_TRUE(cut->stdout_truncated);
}

TEST_F(Connect, AStreamEndsWithItsEndMessage) {
  auto answer = post("ExecStream", "application/connect+proto", pack(0, exec_message("many")));
  EXPECT_EQ(answer.status, 200);
  auto frames = frames_of(answer.body);
  ASSERT_EQ(frames.size(), 1 + 200 + 1 + 1 + 1u);
  EXPECT_EQ(frames.back().flags, kEndOfStream);
  EXPECT_EQ(frames.back().bytes, "{}");
  EXPECT_EQ(rpc::decode<rpc::ExecEvent>(Form::binary, frames.front().bytes)->started->exec_id, "e1");
  EXPECT_TRUE(rpc::decode<rpc::ExecEvent>(Form::binary, frames[frames.size() - 2].bytes)->exit);
  auto failed = frames_of(post("ExecStream", "application/connect+json", pack(0, R"({"sessionId":"x","command":"y"})")).body);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_NE(failed[0].bytes.find("\"code\":\"not_found\""), std::string::npos);
}

TEST_F(Connect, GrpcWebHasItsTrailersInTheBody) {
  auto frames = frames_of(post("Exec", "application/grpc-web+proto", pack(0, exec_message("hello"))).body);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(rpc::decode<rpc::ExecResult>(Form::binary, frames[0].bytes)->out, "hello\n");
  EXPECT_EQ(frames[1].flags, kTrailers);
  EXPECT_EQ(frames[1].bytes, "grpc-status: 0\r\n");
  auto missing = frames_of(post("GetSession", "application/grpc-web", pack(0, "")).body);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_NE(missing[0].bytes.find("grpc-status: 5\r\n"), std::string::npos);
  EXPECT_NE(missing[0].bytes.find("opensandbox-error-code: SESSION::NOT_FOUND\r\n"), std::string::npos);
}

TEST_F(Connect, GrpcWebTextIsTheSameInBase64) {
  auto question = pack(0, exec_message("hello"));
  // As a client that flushes in between sends it: padding in the middle.
  auto text = base64(question.substr(0, 4)) + base64(question.substr(4));
  auto answer = post("Exec", "application/grpc-web-text", text);
  EXPECT_EQ(answer.headers.get("Content-Type"), "application/grpc-web-text");
  auto plain = from_text_form(answer.body);
  ASSERT_TRUE(plain);
  EXPECT_EQ(frames_of(*plain).size(), 2u);
  auto broken = from_text_form(post("Exec", "application/grpc-web-text", "***").body);
  EXPECT_NE(frames_of(*broken)[0].bytes.find("grpc-status: 3"), std::string::npos);
}

TEST_F(Connect, FilesGoInAndComeOutInPieces) {
  auto id = make_session();
  rpc::WriteFileRequest open, data;
  open.open = rpc::WriteFileOpen{id, "/tmp/a", "600"};
  data.data = std::string(2500, 'z');
  auto body =
      pack(0, rpc::encode(Form::binary, open)) + pack(0, rpc::encode(Form::binary, data)) + pack(0, rpc::encode(Form::binary, data));
  auto frames = frames_of(post("WriteFile", "application/connect+proto", body).body);
  ASSERT_EQ(frames.size(), 2u) << frames.at(0).bytes;
  auto info = rpc::decode<rpc::FileInfo>(Form::binary, frames[0].bytes);
  EXPECT_EQ(info->size, 5000u);
  EXPECT_EQ(info->mode, "600");
  rpc::ReadFileRequest read{id, "/tmp/a"};
  EXPECT_EQ(frames_of(post("ReadFile", "application/connect+proto", pack(0, rpc::encode(Form::binary, read))).body).size(), 6u);
}

TEST_F(Connect, WhatCannotBeReadIsRefused) {
  auto id = make_session();
  const std::pair<std::string_view, std::string> kBodies[] = {
      {"application/connect+proto", pack(0, "").substr(0, 3)},
      {"application/connect+proto", std::string("\0\0\0\0\x05"
                                                "ab",
                                                7)},
      {"application/connect+proto", std::string("\0\xFF\xFF\xFF\xFF", 5)},
      {"application/connect+proto", pack(1, "x")},
      {"application/connect+proto", pack(0x40, "x")},
      {"application/connect+proto", ""},
      {"application/connect+proto", pack(0, "") + pack(0, "")},
      {"application/connect+json", pack(0, "{")},
  };
  for (const auto& [type, body] : kBodies) {
    auto frames = frames_of(post("ExecStream", type, body).body);
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_NE(frames[0].bytes.find("\"error\""), std::string::npos) << base64(body);
  }
  EXPECT_EQ(post("GetSession", "text/plain", "{}").status, 415);
  EXPECT_EQ(post("GetSession", "application/grpc+proto", pack(0, "")).status, 415);
  EXPECT_EQ(post("ExecStream", "application/json", "{}").status, 501) << "a stream needs frames";
  auto get = request("GetSession", "application/json", "");
  get.method = "GET";
  EXPECT_EQ(send(std::move(get)).status, 405);
  auto zipped = request("GetSession", "application/json", "{}");
  zipped.headers.add("Content-Encoding", "gzip");
  EXPECT_EQ(send(std::move(zipped)).status, 501);
  auto large = post("GetSession", "application/json", std::string(5u << 20, ' '));
  EXPECT_EQ(large.status, 429);
  auto terminal = frames_of(post("Terminal", "application/connect+proto", pack(0, "")).body);
  EXPECT_NE(terminal[0].bytes.find("GENERAL::NEEDS_GRPC"), std::string::npos);
}

TEST_F(Connect, ATimeoutOfTheClientEndsTheWait) {
  auto message = exec_message("sleep");
  auto call = request("Exec", "application/proto", std::move(message));
  call.headers.add("Connect-Timeout-Ms", "50");
  auto answer = send(std::move(call));
  EXPECT_EQ(answer.status, 504);
  EXPECT_EQ(service_->waiting, 0);
  EXPECT_EQ(service_->withdrawn, 1);
  auto nonsense = request("Exec", "application/proto", "");
  nonsense.headers.add("Connect-Timeout-Ms", "soon");
  EXPECT_EQ(send(std::move(nonsense)).status, 400);
}

TEST_F(Connect, AClientThatHangsUpWithdrawsItsWork) {
  auto message = exec_message("sleep");
  auto connection = loop_.run(http::connect(target_, 5s));
  ASSERT_TRUE(connection);
  bool over = false;
  asio::co_spawn(loop_.io, ask(**connection, request("Exec", "application/proto", std::move(message))),
                 [&](std::exception_ptr) { over = true; });
  loop_.turn_until([&] { return service_->waiting == 1; });
  (*connection)->close();
  loop_.turn_until([&] { return over && service_->withdrawn == 1; });
  EXPECT_EQ(service_->waiting, 0);
}

// ---- the relay ------------------------------------------------------------------------------------------------------

Task<Result<std::string>> read_all(http::Stream& stream, std::string until) {
  std::string got;
  char block[4096];
  stream.set_deadline(10s);
  while (until.empty() || got.find(until) == std::string::npos) {
    auto count = co_await stream.read_some(block);
    if (!count) co_return std::move(count).error();
    if (*count == 0) break;
    got.append(block, *count);
  }
  co_return got;
}

class Relay : public Connect {
 protected:
  http::Stream& open(std::string_view method) {
    auto call = request(method, "application/grpc", "");
    call.headers.add("Connection", "Upgrade");
    call.headers.add("Upgrade", std::string(kRelayProtocol));
    connection_ = *loop_.run(http::connect(target_, 5s));
    auto head = loop_.run(connection_->start(std::move(call)));
    EXPECT_EQ(head->status, 101);
    return connection_->stream();
  }
  void write(std::string bytes) { EXPECT_TRUE(loop_.run(connection_->stream().write_all(bytes))); }
  std::string read(std::string until = {}) {
    auto got = loop_.run(read_all(connection_->stream(), std::move(until)));
    EXPECT_TRUE(got) << got.error().what();
    return got ? *got : std::string();
  }
  // Lets everything happen that is ready to.
  void turn() {
    for (int i = 0; i < 200; ++i) loop_.run(yield_now());
  }
  std::unique_ptr<http::ClientConnection> connection_;
};

TEST_F(Relay, ACallIsMessagesThenTrailers) {
  open("Exec");
  write(pack(0, exec_message("hello")) + pack(kEndOfStream, ""));
  auto frames = frames_of(read());
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(rpc::decode<rpc::ExecResult>(Form::binary, frames[0].bytes)->out, "hello\n");
  EXPECT_EQ(frames[1].bytes, "grpc-status: 0\r\n");
}

TEST_F(Relay, ATerminalTalksBothWays) {
  open("Terminal");
  rpc::TerminalInput first, typed, resize, signal, bye;
  first.open = rpc::TerminalOpen{};
  first.open->session_id = make_session();
  open("Terminal");
  write(pack(0, rpc::encode(Form::binary, first)));
  EXPECT_NE(read("t1").find("t1"), std::string::npos);
  typed.data = "ls\n";
  write(pack(0, rpc::encode(Form::binary, typed)));
  EXPECT_NE(read("ls\n").find("ls\n"), std::string::npos);
  resize.resize = rpc::TerminalSize{100, 30};
  write(pack(0, rpc::encode(Form::binary, resize)));
  read("[100x30]");
  signal.signal = "SIGINT";
  write(pack(0, rpc::encode(Form::binary, signal)));
  read("[SIGINT]");
  bye.data = "exit";
  write(pack(0, rpc::encode(Form::binary, bye)));
  EXPECT_NE(read().find("grpc-status: 0"), std::string::npos);
}

TEST_F(Relay, AMessageThatIsNoneEndsATerminal) {
  rpc::TerminalInput first;
  first.open = rpc::TerminalOpen{};
  first.open->session_id = make_session();
  open("Terminal");
  write(pack(0, rpc::encode(Form::binary, first)));
  read("t1");
  write(pack(0, rpc::encode(Form::binary, first)));
  EXPECT_NE(read().find("grpc-status: 3"), std::string::npos) << "it is opened once";
}

TEST_F(Relay, ClosingTheConnectionWithdrawsTheWork) {
  auto message = exec_message("sleep");
  open("Exec");
  write(pack(0, message) + pack(kEndOfStream, ""));
  loop_.turn_until([&] { return service_->waiting == 1; });
  connection_->close();
  loop_.turn_until([&] { return service_->withdrawn == 1; });
}

TEST_F(Relay, ACreateThatNobodyWaitsForIsFinishedAndUndone) {
  for (std::string_view key : {"", "mine"}) {
    service_->go = false;
    rpc::CreateSessionRequest slow;
    slow.image = "slow";
    slow.idempotency_key = key;
    auto made_before = service_->created;
    open("CreateSession");
    write(pack(0, rpc::encode(Form::binary, slow)) + pack(kEndOfStream, ""));
    loop_.turn_until([&] { return service_->last_create.image == "slow"; });
    connection_->close();
    turn();  // the end of the connection is seen
    service_->last_create.image = "slow";
    service_->go = true;
    loop_.turn_until([&] { return service_->created == made_before + 1; });
    turn();
    EXPECT_EQ(service_->sessions.size(), key.empty() ? 0u : 1u) << "a key lets the asker come back for it";
  }
}

TEST_F(Relay, OnlyTheRelaysProtocolIsSpoken) {
  auto call = request("Exec", "application/grpc", "");
  call.headers.add("Connection", "Upgrade");
  call.headers.add("Upgrade", "websocket");
  EXPECT_EQ(send(std::move(call)).status, 501);
}

}  // namespace
}  // namespace osb::api::connect
