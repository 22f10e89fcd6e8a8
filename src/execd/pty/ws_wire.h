// For tests: a WebSocket client of a terminal that sees every frame.
#pragma once
#include "execd/daemon_fixture.h"
#include "http/websocket.h"

namespace osb::execd {

struct WsFrame {
  unsigned opcode = 0;  // 0xFF: the connection ended
  std::string payload;
};

class WsWire {
 public:
  WsWire(const std::string& socket, std::string_view target) : wire_(socket) {
    wire_.send(cat("GET ", target,
                   " HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
    auto head = wire_.head();
    status_ = head.status;
    if (status_ != 101) body_ = wire_.take(std::strtoul(head.head.c_str() + head.head.find("Content-Length: ") + 16, nullptr, 10));
  }
  int status() const { return status_; }
  const std::string& body() const { return body_; }

  void send(http::WsOpcode opcode, std::string_view payload) {
    char head[http::kWsHead];
    std::size_t size = http::put_ws_head(head, opcode, payload.size());
    head[1] = static_cast<char>(head[1] | 0x80);
    wire_.send(cat(std::string_view(head, size), std::string_view("\0\0\0\0", 4), payload));
  }
  void say(std::string_view json) { send(http::WsOpcode::text, json); }
  void type(std::string_view keys) { send(http::WsOpcode::binary, cat(std::string_view("\0", 1), keys)); }

  WsFrame frame() {
    std::string head = wire_.take(2);
    if (head.size() < 2) return {0xFF, {}};
    std::size_t size = static_cast<unsigned char>(head[1]);
    EXPECT_LT(size, 128u) << "a server's frame is not masked";
    if (size >= 126) {
      std::string wide = wire_.take(size == 126 ? 2 : 8);
      size = 0;
      for (char c : wide) size = size << 8 | static_cast<unsigned char>(c);
    }
    return {static_cast<unsigned char>(head[0]) & 0x0Fu, wire_.take(size)};
  }
  // The next text or close frame as text ("4001 TAKEN_OVER" for a close); output is collected by kind meanwhile.
  std::string word() {
    for (;;) {
      WsFrame got = frame();
      if (got.opcode == 0xFF) return "(ended)";
      if (got.opcode == 1) return got.payload;
      if (got.opcode == 8)
        return cat(static_cast<unsigned char>(got.payload[0]) << 8 | static_cast<unsigned char>(got.payload[1]), " ",
                   got.payload.substr(2));
      if (got.opcode == 10) return cat("pong ", got.payload);
      if (got.opcode == 2) collect(got.payload);
    }
  }
  // Reads until the output (of either kind, or the replay) holds `mark`; forgets everything up to it.
  bool sees(std::string_view mark) {
    while (!output.contains(mark)) {
      WsFrame got = frame();
      if (got.opcode != 2) return last = got.payload, false;
      collect(got.payload);
    }
    output.erase(0, output.find(mark) + mark.size());
    return true;
  }
  // One more frame of output; false when something else came.
  bool collects() {
    WsFrame got = frame();
    if (got.opcode == 2) collect(got.payload);
    return got.opcode == 2;
  }
  void close() { wire_.close(); }
  Wire& wire() { return wire_; }

  std::string output;        // 0x01, and 0x02 and the replay too
  std::string error_output;  // 0x02
  std::string last;          // what sees() met instead
  std::uint64_t replayed_from = ~std::uint64_t{0};
  std::size_t largest = 0;  // bytes of output in one frame

 private:
  void collect(const std::string& payload) {
    std::string_view bytes = std::string_view(payload).substr(1);
    if (payload[0] == 3) {
      replayed_from = 0;
      for (char c : bytes.substr(0, 8)) replayed_from = replayed_from << 8 | static_cast<unsigned char>(c);
      bytes.remove_prefix(8);
    } else {
      largest = std::max(largest, bytes.size());
    }
    if (payload[0] == 2) error_output += bytes;
    output += bytes;
  }
  Wire wire_;
  int status_ = 0;
  std::string body_;
};

class TerminalTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    start();
  }
  std::string create(std::string_view body = "") const {
    auto reply = ask("POST", "/pty", body);
    EXPECT_EQ(reply.status, 201) << reply.body;
    return reply.status == 201 ? text_of(boost::json::parse(reply.body).as_object(), "session_id") : "";
  }
  WsWire attach(const std::string& id, std::string_view query = "") const { return WsWire(socket_path(), cat("/pty/", id, "/ws", query)); }
  // Attached, with a prompt that cannot be mistaken for output.
  WsWire shell(const std::string& id) const {
    WsWire ws = attach(id);
    EXPECT_EQ(ws.word(), connected(id));
    ws.type("PS1='$ '; bind 'set enable-bracketed-paste off'; echo re''ady\r");
    EXPECT_TRUE(ws.sees("ready\r\n")) << ws.output;
    return ws;
  }
  static std::string connected(std::string_view id, std::string_view mode = "pty") {
    return cat(R"({"type":"connected","session_id":")", id, R"(","mode":")", mode, "\"}");
  }
  Event state(const std::string& id) const { return boost::json::parse(ask("GET", cat("/pty/", id)).body).as_object(); }
  std::uint64_t offset(const std::string& id) const { return state(id).at("output_offset").to_number<std::uint64_t>(); }
};

}  // namespace osb::execd
