// Commands on record: before they run, when they end, under every spelling, and not at all when the record fails.
#include <fcntl.h>
#include <gmock/gmock.h>

#include "base/sha256.h"
#include "base/text.h"
#include "proxy/proxy_fixture.h"

namespace osb::proxy {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string frame(unsigned char type, std::string_view payload) {
  std::string out(1, static_cast<char>(type));
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((payload.size() >> shift) & 255);
  return out.append(payload);
}

TEST(EventWatch, FindsTheEndHoweverTheBytesAreCut) {
  std::string stream =
      "{\"type\":\"init\",\"text\":\"x\",\"timestamp\":1}\n\n{\"type\":\"stdout\",\"text\":\"\\\"error\\\"\"}\n\n"
      "{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":\"127\",\"traceback\":[\"x\"]},\"timestamp\":1}\n\n";
  for (std::size_t size = 1; size < stream.size(); ++size) {
    EventWatch watch;
    for (std::size_t at = 0; at < stream.size(); at += size) watch.feed(std::string_view(stream).substr(at, size));
    ASSERT_TRUE(watch.end()) << size;
    EXPECT_EQ(watch.end()->exit_code, "127");
    EXPECT_EQ(watch.end()->cause, "exited");
  }
}

TEST(EventWatch, CompletionIsExitCodeZero) {
  EventWatch watch;
  watch.feed("{\"type\":\"execution_complete\",\"execution_time\":5,\"timestamp\":1}\n\n");
  ASSERT_TRUE(watch.end());
  EXPECT_EQ(watch.end()->exit_code, "0");
}

TEST(EventWatch, IsNotFooledOrFloodedByOutput) {
  EventWatch watch;
  watch.feed("{\"type\":\"stdout\",\"text\":\"execution_complete\"}\n");
  watch.feed(std::string(1 << 20, 'x'));
  watch.feed("\"execution_complete\"\n{\"type\":\"execution_complete\"");
  EXPECT_FALSE(watch.end());
  watch.feed("}\n");
  EXPECT_TRUE(watch.end()) << "the line after the flood counts";
}

TEST(EventWatch, ErrorsOfCodeKeepTheirNameWithinBounds) {
  EventWatch watch;
  watch.feed(cat("{\"type\":\"error\",\"error\":{\"ename\":\"", std::string(1000, 'N'), "\",\"evalue\":\"bad\"}}\n"));
  ASSERT_TRUE(watch.end());
  EXPECT_EQ(watch.end()->exit_code, "");
  EXPECT_LT(watch.end()->cause.size(), 80u);
}

TEST(FrameWatch, FindsTheEndHoweverTheBytesAreCut) {
  std::string stream =
      frame(10, "out") + frame(11, "") + frame(10, std::string(70'000, '\x0c')) + frame(12, R"({"exit_code":3,"cause":"exited"})");
  for (std::size_t size : {1u, 2u, 3u, 7u, 4096u, 1'000'000u}) {
    FrameWatch watch;
    for (std::size_t at = 0; at < stream.size(); at += size) watch.feed(std::string_view(stream).substr(at, size));
    ASSERT_TRUE(watch.end()) << size;
    EXPECT_EQ(watch.end()->exit_code, "3");
    EXPECT_EQ(watch.end()->cause, "exited");
  }
}

TEST(FrameWatch, BadEndsAreNoEnds) {
  for (const std::string& payload : {std::string("{"), std::string("[]"), std::string(100'000, '{'), std::string(R"({"exit_code":"3)")}) {
    FrameWatch watch;
    watch.feed(frame(12, payload));
    EXPECT_FALSE(watch.end() && !watch.end()->exit_code.empty());
  }
  FrameWatch watch;
  watch.feed(std::string_view("\x0c\xff\xff\xff\xff{}", 7));
  EXPECT_FALSE(watch.end()) << "a length past all bounds is only ever skipped";
}

class CommandAudit : public ProxyFixture {
 protected:
  void answer_with(std::string events) {
    backend_ = [events = std::move(events)](http::Request& request, http::Responder& responder) {
      return stream(request, responder, events);
    };
  }
  static Task<void> stream(http::Request& request, http::Responder& responder, std::string events) {
    [[maybe_unused]] auto body = co_await request.body->read_all(1 << 20);
    http::Headers headers;
    headers.add("Content-Type", "text/event-stream");
    auto begun = co_await responder.begin(200, std::move(headers), events);
    if (begun) [[maybe_unused]]
      auto ended = co_await responder.end();
  }
};

TEST_F(CommandAudit, ACommandIsRecordedWithItsTextAndItsEnd) {
  answer_with("{\"type\":\"init\",\"text\":\"1\"}\n\n{\"type\":\"execution_complete\",\"execution_time\":1}\n\n");
  auto response = call("POST", "/44772/command", R"({"command":"echo hi","cwd":"/tmp"})",
                       {{std::string(kExecdTokenHeader), proxy_->tokens().execd(sandbox_)}, {"X-Request-ID", "cmd-1"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr("execution_complete"));
  auto text = audit_text();
  EXPECT_THAT(text, HasSubstr(R"("action":"command.start")"));
  EXPECT_THAT(text, HasSubstr("echo hi"));
  EXPECT_THAT(text, HasSubstr(R"("cwd":"/tmp")"));
  EXPECT_THAT(text, HasSubstr("cmd-1"));
  EXPECT_THAT(text, HasSubstr(R"("exit_code":"0")"));
  EXPECT_EQ(recorded("command.start"), 1u);
  EXPECT_EQ(recorded("command.end"), 1u);
}

TEST_F(CommandAudit, EverySpellingOfACommandPathIsRecorded) {
  for (std::string path : {"/command", "/%63ommand", "/command?x=1", "/code", "/session/abc/run", "/session/%61bc/%72un"})
    execd("POST", path, R"({"command":"x"})");
  EXPECT_EQ(recorded("command.start"), 6u);
  execd("GET", "/command/status/1");
  execd("POST", "/files/mv", "[]");
  EXPECT_EQ(recorded("command.start"), 6u) << "and nothing else";
  execd("DELETE", "/command?id=77");
  EXPECT_EQ(recorded("command.interrupt"), 1u);
  EXPECT_THAT(audit_text(), HasSubstr("id=77"));
}

TEST_F(CommandAudit, WhatHappensToFilesIsRecordedWithItsPaths) {
  execd("DELETE", "/%66iles?path=%2Ftmp%2Fa&path=/b");
  execd("DELETE", "/directories?path=/c");
  execd("POST", "/files/mv", R"([{"src":"/d","dest":"/e"}])");
  execd("POST", "/files/upload", "not a form");
  for (auto action : {"file.delete", "directory.delete", "file.move", "file.upload", "file.uploaded"})
    EXPECT_EQ(recorded(action), 1u) << action;
  auto text = audit_text();
  for (auto part : {R"("paths":"/tmp/a\n/b")", R"("paths":"/c")", "/d", "/e"}) EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, Not(HasSubstr("not a form"))) << "content is never on record";
}

TEST_F(CommandAudit, SessionsAndReadingOnAreRecordedToo) {
  answer_with("{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":\"9\"},\"seq\":4,\"timestamp\":1}\n\n");
  execd("POST", "/session", R"({"cwd":"/srv"})");
  execd("POST", "/session/abc/run", R"({"command":"make it so"})");
  EXPECT_EQ(recorded("command.end"), 1u);
  execd("DELETE", "/session/abc");
  execd("GET", "/osb/v1/runs/0011/events?since=3");
  EXPECT_EQ(recorded("session.start"), 1u);
  EXPECT_EQ(recorded("command.start"), 1u);
  EXPECT_EQ(recorded("session.end"), 1u);
  EXPECT_EQ(recorded("command.resume"), 1u);
  EXPECT_EQ(recorded("command.end"), 2u) << "the end is heard by whoever reads it";
  auto text = audit_text();
  for (auto part : {"make it so", "/srv", "/osb/v1/runs/0011/events?since=3", R"("exit_code":"9")"}) EXPECT_THAT(text, HasSubstr(part));
}

TEST_F(CommandAudit, TerminalsAreRecorded) {
  execd("POST", "/pty", R"({"cwd":"/tmp","command":"top"})");
  EXPECT_EQ(recorded("terminal.create"), 1u);
  EXPECT_THAT(audit_text(), HasSubstr(R"("command":"top")"));
  execd("GET", "/pty/abc/ws?since=5");
  execd("GET", "/%70ty/abc/%77s");
  EXPECT_EQ(recorded("terminal.attach"), 2u);
  EXPECT_EQ(recorded("terminal.detach"), 2u);
  EXPECT_THAT(audit_text(), HasSubstr("since=5"));
  execd("GET", "/pty/abc");
  EXPECT_EQ(recorded("terminal.attach"), 2u) << "looking is not attaching";
  execd("DELETE", "/pty/abc");
  EXPECT_EQ(recorded("terminal.delete"), 1u);
  execd("POST", "/osb/v1/exec", R"({"argv":["vi"],"tty":{"cols":80,"rows":24}})");
  EXPECT_THAT(audit_text(), HasSubstr(R"("tty":"true")"));
}

TEST_F(CommandAudit, ExecdIsNotReachedThroughItself) {
  for (std::string path : {"/proxy/44772/command", "/proxy/044772/command", "/%70roxy/4477%32/command", "/proxy/44772"})
    EXPECT_EQ(execd("POST", path, R"({"command":"x"})").status, 599) << path;
  EXPECT_EQ(requests_, 0u);
  EXPECT_EQ(execd("GET", "/proxy/8080/x").status, 200) << "the control: other ports may be";
}

TEST_F(CommandAudit, ABodyExecdMightReadDifferentlyIsRecordedAsItIs) {
  execd("POST", "/command", R"({"command":"rm -rf /"} trailing)");
  EXPECT_THAT(audit_text(), HasSubstr("rm -rf /"));
  EXPECT_EQ(seen_body_, R"({"command":"rm -rf /"} trailing)") << "forwarded unchanged";
}

TEST_F(CommandAudit, LongCommandsAreRecordedWithinBounds) {
  execd("POST", "/command", cat(R"({"command":")", std::string(100'000, 'q'), R"("})"));
  auto text = audit_text();
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), 'q')) / kAuditedText, 1u);
  EXPECT_THAT(text, HasSubstr(R"("bytes":"100000")"));
  EXPECT_THAT(text, HasSubstr(cat(R"("sha256":")", sha256_hex(std::string(100'000, 'q')))));
  EXPECT_GT(seen_body_.size(), 100'000u);
}

TEST_F(CommandAudit, CodeIsRecordedWithItsLanguageItsContextAndItsEnd) {
  answer_with("{\"type\":\"init\",\"text\":\"c1\"}\n\n{\"type\":\"error\",\"error\":{\"ename\":\"NameError\",\"evalue\":\"x\"}}\n\n");
  execd("POST", "/code", R"({"code":"x + 1","context":{"id":"c1","language":"python"}
})");
  auto text = audit_text();
  EXPECT_THAT(text, HasSubstr(R"("command":"x + 1")"));
  EXPECT_THAT(text, HasSubstr(R"("language":"python")"));
  EXPECT_THAT(text, HasSubstr(R"("context":"c1")"));
  EXPECT_THAT(text, HasSubstr("NameError"));
}

TEST_F(CommandAudit, ARefusedCommandEndsAsRefused) {
  backend_ = [](http::Request&, http::Responder& responder) -> Task<void> {
    [[maybe_unused]] auto sent = co_await responder.send(http::Response::json(400, R"({"code":"INVALID_REQUEST_BODY","message":"x"})"));
  };
  EXPECT_EQ(execd("POST", "/command", "{}").status, 400);
  EXPECT_THAT(audit_text(), HasSubstr(R"("outcome":"refused")"));
}

TEST_F(CommandAudit, ACommandThatCannotBeRecordedDoesNotRun) {
  // A closed log: every write fails from here on.
  for (int fd = 3; fd < 256; ++fd) {
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    char target[512];
    auto n = ::readlink(link, target, sizeof target);
    if (n <= 0 || std::string_view(target, static_cast<std::size_t>(n)) != directory_ + "/audit.jsonl") continue;
    int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::dup2(full, fd), fd);
    ::close(full);
  }
  auto response = execd("POST", "/command", R"({"command":"true"})");
  EXPECT_EQ(response.body, "GENERAL::AUDIT_UNAVAILABLE");
  EXPECT_EQ(requests_, 0u);
  EXPECT_EQ(execd("GET", "/ping").status, 200) << "the control: what changes nothing goes on";
}

TEST_F(CommandAudit, AnExecSessionIsRecordedWithItsArgumentsAndItsEnd) {
  backend_ = [](http::Request& request, http::Responder& responder) -> Task<void> {
    [[maybe_unused]] auto body = co_await request.body->read_all(65536);
    http::Headers headers;
    headers.add("Upgrade", "osb-exec/1");
    auto stream = co_await responder.upgrade(101, std::move(headers));
    std::string out = frame(10, "hi\n") + frame(12, R"({"exit_code":5,"cause":"exited"})");
    [[maybe_unused]] auto sent = co_await (*stream)->write_all(out);
  };
  {
    auto connection = loop_.run(http::connect(front(), std::chrono::seconds(5)));
    http::ClientRequest request;
    request.method = "POST";
    request.target = "/44772/osb/v1/exec";
    request.body = R"({"argv":["echo","hi"],"stdin":false})";
    for (auto& [name, value] : execd_token()) request.headers.add(name, value);
    request.headers.add("Connection", "Upgrade");
    request.headers.add("Upgrade", "osb-exec/1");
    auto head = loop_.run((*connection)->start(std::move(request)));
    ASSERT_TRUE(head) << head.error().what();
    ASSERT_EQ(head->status, 101);
    std::string got;
    char block[256];
    for (;;) {
      auto read = loop_.run((*connection)->stream().read_some(block));
      if (!read || *read == 0) break;
      got.append(block, *read);
    }
    EXPECT_THAT(got, HasSubstr("hi\n"));
  }
  loop_.turn_until([&] { return recorded("command.end") == 1; });
  EXPECT_THAT(audit_text(), HasSubstr(R"([\"echo\",\"hi\"])"));
  EXPECT_THAT(audit_text(), HasSubstr(R"("exit_code":"5")"));
}

}  // namespace
}  // namespace osb::proxy
