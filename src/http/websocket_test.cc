#include "http/websocket.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "http/test_bed.h"

namespace osb::http {
namespace {

// A frame as a client sends it; `first` is the whole first byte.
std::string masked(unsigned first, std::string_view payload, std::uint64_t claimed = ~std::uint64_t{0}) {
  std::string out(kWsHead, '\0');
  out.resize(put_ws_head(out.data(), WsOpcode::text, claimed == ~std::uint64_t{0} ? payload.size() : static_cast<std::size_t>(claimed)));
  out[0] = static_cast<char>(first);
  out[1] = static_cast<char>(out[1] | 0x80);
  const char mask[4] = {0x12, 0x34, 0x56, 0x78};
  out.append(mask, 4);
  for (std::size_t i = 0; i < payload.size(); ++i) out += static_cast<char>(payload[i] ^ mask[i & 3]);
  return out;
}
std::string text(std::string_view payload) { return masked(0x81, payload); }

// "text:hello ping:x close:" and, when it fails, "!1002".
std::string heard(std::string_view bytes, std::size_t step, std::size_t limit = kWsMessageBytes) {
  WsDecoder decoder(limit);
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    decoder.feed(bytes.substr(at, step));
    for (auto message = decoder.next();; message = decoder.next()) {
      if (!message) return cat(out, "!", decoder.close_code());
      if (!*message) break;
      const char* names[] = {"", "text", "binary", "", "", "", "", "", "close", "ping", "pong"};
      out += cat(names[static_cast<int>((*message)->opcode)], ":", (*message)->payload, " ");
    }
  }
  return out;
}

void expect_heard(std::string_view bytes, std::string_view what, std::size_t limit = kWsMessageBytes) {
  for (std::size_t step : {std::size_t{1}, std::size_t{3}, bytes.size()}) EXPECT_EQ(heard(bytes, step, limit), what) << "cut by " << step;
}

std::string close_with(unsigned code, std::string_view reason = "") {
  return masked(0x88, std::string{static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)} + std::string(reason));
}

TEST(WebSocket, AnswersTheKeyOfTheStandardsExample) {
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocket, PutsFragmentsTogetherAndLetsControlFramesBetweenThem) {
  expect_heard(text("hello"), "text:hello ");
  expect_heard(masked(0x82, std::string(300, 'x')), cat("binary:", std::string(300, 'x'), " "));
  expect_heard(masked(0x82, std::string(70000, 'x')), cat("binary:", std::string(70000, 'x'), " "));
  expect_heard(masked(0x01, "he") + masked(0x89, "ping") + masked(0x00, "l") + masked(0x80, "lo") + text(""),
               "ping:ping text:hello text: ");
  expect_heard(masked(0x8A, "") + close_with(4001, "bye"), cat("pong: close:\x0f\xa1", "bye "));
  expect_heard(masked(0x01, "\xE2\x82") + masked(0x80, "\xAC"), "text:\xE2\x82\xAC ");
}

TEST(WebSocket, EndsTheConversationAtTheFirstFrameThatBreaksARule) {
  auto unmasked = ws_frame(WsOpcode::text, "hello");
  expect_heard(unmasked, "!1002");
  for (unsigned bit : {0x40u, 0x20u, 0x10u}) expect_heard(masked(0x81 | bit, "x"), "!1002");
  for (unsigned opcode : {3u, 4u, 5u, 6u, 7u, 11u, 12u, 13u, 14u, 15u}) expect_heard(masked(0x80 | opcode, "x"), "!1002");
  for (unsigned opcode : {8u, 9u, 10u}) {
    expect_heard(masked(opcode, ""), "!1002");                            // a control frame in pieces
    expect_heard(masked(0x80 | opcode, std::string(126, 'x')), "!1002");  // or too long
  }
  expect_heard(masked(0x80, "x"), "!1002");              // nothing to continue
  expect_heard(masked(0x01, "x") + text("y"), "!1002");  // a message inside another
  expect_heard(text("ok") + masked(0xC1, "x") + text("never"), "text:ok !1002");
}

TEST(WebSocket, TakesALengthOnlyInItsShortestForm) {
  std::string two("\x81\xFE\x00\x05", 4);
  std::string eight("\x81\xFF\x00\x00\x00\x00\x00\x00\x00\x05", 10);
  std::string negative("\x81\xFF\x80\x00\x00\x00\x00\x01\x00\x00", 10);
  for (auto& head : {two, eight, negative}) expect_heard(head + std::string(4, '\0') + "hello", "!1002");
  expect_heard(std::string("\x81\x85", 2) + std::string(4, '\0') + "hello", "text:hello ");
}

TEST(WebSocket, RefusesAMessagePastTheBoundBeforeItIsThere) {
  expect_heard(masked(0x82, "", 2049), "!1009", 2048);
  expect_heard(masked(0x82, "", std::uint64_t{1} << 62), "!1009", 2048);
  expect_heard(masked(0x02, std::string(2000, 'x')) + masked(0x80, "", 49), "!1009", 2048);
  expect_heard(masked(0x02, std::string(2000, 'x')) + masked(0x80, std::string(48, 'y')),
               cat("binary:", std::string(2000, 'x'), std::string(48, 'y'), " "), 2048);
}

TEST(WebSocket, WantsTextToBeUtf8) {
  for (std::string_view bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                               "\xF5\x80\x80\x80", "\xE2\x82", "a\xFF"})
    expect_heard(text(bad), "!1007");
  for (std::string_view good :
       {"", "a", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    expect_heard(text(good), cat("text:", good, " "));
  expect_heard(masked(0x82, "\xFF"), "binary:\xFF ");
}

TEST(WebSocket, LooksIntoACloseFrame) {
  expect_heard(masked(0x88, ""), "close: ");
  expect_heard(masked(0x88, "x"), "!1002");
  for (unsigned code : {0u, 999u, 1004u, 1005u, 1006u, 1015u, 1016u, 2999u, 5000u, 65535u}) expect_heard(close_with(code), "!1002");
  expect_heard(close_with(1000, "\xFF"), "!1007");
  for (unsigned code : {1000u, 1001u, 1003u, 1007u, 1011u, 3000u, 4999u}) EXPECT_TRUE(heard(close_with(code), 2).starts_with("close:"));
}

TEST(WebSocket, WritesHeadsOfEveryWidth) {
  EXPECT_EQ(ws_frame(WsOpcode::text, "hi"), "\x81\x02hi");
  EXPECT_EQ(ws_frame(WsOpcode::binary, std::string(126, 'x')).substr(0, 4), std::string("\x82\x7E\x00\x7E", 4));
  EXPECT_EQ(ws_frame(WsOpcode::binary, std::string(65536, 'x')).substr(0, 10), std::string("\x82\x7F\0\0\0\0\0\1\0\0", 10));
  EXPECT_EQ(ws_close(4001, "TAKEN_OVER"), std::string("\x88\x0C\x0F\xA1TAKEN_OVER"));
  EXPECT_EQ(ws_close(1000, std::string(500, 'x')).size(), 2u + 125);
}

Task<void> greet(Request& request, Responder& responder) {
  if (auto refused = refuse_websocket(request)) {
    [[maybe_unused]] auto sent = co_await responder.send(std::move(*refused));
    co_return;
  }
  auto stream = co_await responder.upgrade(101, websocket_headers(request));
  auto frame = ws_frame(WsOpcode::text, "welcome");
  if (stream) [[maybe_unused]]
    auto sent = co_await (*stream)->write_all(frame);
}

std::string handshake(std::string_view changed = {}, std::string_view replacement = {}) {
  std::string out =
      "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  if (!changed.empty()) out.replace(out.find(changed), changed.size(), replacement);
  return out;
}

TEST(WebSocket, SwitchesOnlyAfterAWholeHandshake) {
  TestBed bed([](Request& request, Responder& responder) { return greet(request, responder); });
  auto good = bed.exchange(handshake());
  EXPECT_TRUE(good.starts_with("HTTP/1.1 101 ")) << good;
  EXPECT_TRUE(good.contains("Upgrade: websocket\r\n"));
  EXPECT_TRUE(good.contains("Connection: Upgrade\r\n"));
  EXPECT_TRUE(good.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_TRUE(good.ends_with("\x81\x07welcome"));
  auto old = bed.exchange(handshake("Version: 13", "Version: 8"));
  EXPECT_TRUE(old.starts_with("HTTP/1.1 426 ")) << old;
  EXPECT_TRUE(old.contains("Sec-WebSocket-Version: 13\r\n"));
  for (auto [changed, replacement] : {std::pair{"GET", "PUT"},
                                      {"Upgrade: websocket", "Upgrade: h2c"},
                                      {"Connection: keep-alive, Upgrade", "Connection: keep-alive"},
                                      {"dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZR=="},
                                      {"dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ="},
                                      {"dGhlIHNhbXBsZSBub25jZQ==", ""}})
    EXPECT_TRUE(bed.exchange(handshake(changed, replacement)).starts_with("HTTP/1.1 400 ")) << replacement;
}

}  // namespace
}  // namespace osb::http
