#include "execd/kernels/zmtp.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <thread>

#include "base/fd.h"
#include "base/text.h"

namespace osb::execd::zmtp {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

const std::string kGreeting = "\xff\0\0\0\0\0\0\0\0\x7f\3\0NULL"s + std::string(48, '\0');
const std::string kReady = "\4\x19\5READY\xbSocket-Type\0\0\0\3PUB"s;

// A peer that says what it is told to say, whatever it hears, and remembers what that was.
class Scripted {
 public:
  explicit Scripted(std::string words) {
    char folder[] = "/tmp/zmtp-test-XXXXXX";
    folder_ = ::mkdtemp(folder);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    thread_ = std::thread([this, held = std::move(listener), words = std::move(words)] { play(held.get(), words); });
  }
  ~Scripted() {
    thread_.join();
    ::unlink(path().c_str());
    ::rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/peer"; }
  const std::string& heard() {
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([] {});
    return heard_;
  }

 private:
  void play(int listener, const std::string& words) {
    Fd peer(::accept(listener, nullptr, nullptr));
    std::string_view left = words;
    while (!left.empty()) {
      auto n = ::send(peer.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (n <= 0) break;
      left.remove_prefix(static_cast<std::size_t>(n));
    }
    ::shutdown(peer.get(), SHUT_WR);
    char bytes[4096];
    for (auto n = ::recv(peer.get(), bytes, sizeof bytes, 0); n > 0; n = ::recv(peer.get(), bytes, sizeof bytes, 0))
      heard_.append(bytes, static_cast<std::size_t>(n));
  }

  std::string folder_;
  std::string heard_;
  std::thread thread_;
};

struct Outcome {
  std::string error;  // empty: connected and received
  Message message;
};

Task<void> talk(std::string path, Outcome& out) {
  auto target = http::Target::unix_socket(std::move(path));
  auto peer = co_await Peer::connect(std::move(target), Type::sub, 5s);
  if (!peer) co_return void(out.error = peer.error().what());
  auto message = co_await (*peer)->receive();
  if (message)
    out.message = *std::move(message);
  else
    out.error = message.error().what();
  (*peer)->close();
}

Outcome hear(const std::string& path) {
  asio::io_context io(1);
  Outcome out;
  asio::co_spawn(io, talk(path, out), [](std::exception_ptr e) { EXPECT_FALSE(e); });
  io.run();
  return out;
}

Outcome after_ready(std::string words) {
  Scripted peer(kGreeting + kReady + std::move(words));
  return hear(peer.path());
}

TEST(Zmtp, GreetsSubscribesAndReceivesShortAndLongFrames) {
  std::string large(70'000, 'x');
  Scripted peer(kGreeting + kReady + "\1\5topic\2\0\0\0\0\0\1\x11\x70"s + large);
  auto out = hear(peer.path());
  EXPECT_EQ(out.error, "");
  ASSERT_EQ(out.message.frames.size(), 2u);
  EXPECT_EQ(out.message.frames[0], "topic");
  EXPECT_EQ(out.message.frames[1], large);
  EXPECT_EQ(peer.heard(), kGreeting + "\4\x19\5READY\xbSocket-Type\0\0\0\3SUB"s + "\0\1\1"s);
}

TEST(Zmtp, AnswersAPingWithItsOwnWords) {
  Scripted peer(kGreeting + kReady + "\4\xa\4PING\0\x1e"s + "abc" + "\0\2ok"s);
  auto out = hear(peer.path());
  EXPECT_EQ(out.error, "");
  EXPECT_TRUE(peer.heard().ends_with("\4\x8\4PONGabc"s));
}

TEST(Zmtp, DropsWhatIsTooLargeToKeepAndSaysHowMuchItWas) {
  std::string huge(kMaxMessage + 1, 'x');
  std::string size;
  for (int shift = 56; shift >= 0; shift -= 8) size += static_cast<char>(huge.size() >> shift);
  auto out = after_ready("\1\4head"s + "\3" + size + huge + "\0\4tail"s);
  EXPECT_EQ(out.error, "");
  ASSERT_EQ(out.message.frames.size(), 3u);
  EXPECT_EQ(out.message.frames[0], "head");
  EXPECT_EQ(out.message.frames[1], "");
  EXPECT_EQ(out.message.frames[2], "tail");
  EXPECT_EQ(out.message.left_out, huge.size());
}

TEST(Zmtp, ComesToAnEndWithEveryPeerThatDoesNotSpeakIt) {
  EXPECT_NE(after_ready("").error, "");
  EXPECT_NE(after_ready("\0\5abc"s).error, "");
  EXPECT_NE(after_ready("\x10\1a"s).error.find("unknown flags"), std::string::npos);
  EXPECT_NE(after_ready("\2\xff\xff\xff\xff\xff\xff\xff\xff"s).error.find("4 GiB"), std::string::npos);
  EXPECT_NE(after_ready("\6\0\0\0\0\0\1\0\0"s).error.find("command"), std::string::npos);
  std::string endless;
  for (int i = 0; i < 100; ++i) endless += "\1\0"s;
  EXPECT_NE(after_ready(endless).error.find("64 frames"), std::string::npos);
  for (const std::string& words : {""s, "HTTP/1.1 400 Bad Request\r\n\r\n"s + std::string(64, ' '), kGreeting,
                                   kGreeting.substr(0, 12) + "PLAIN" + std::string(47, '\0'), kGreeting + "\4\x7\5ERROR\0"s,
                                   kGreeting + "\0\1x"s, "\xff\0\0\0\0\0\0\0\1\x7f\1\0"s + std::string(52, '\0')}) {
    Scripted peer(words);
    EXPECT_NE(hear(peer.path()).error, "") << to_hex(words.substr(0, 20));
  }
}

}  // namespace
}  // namespace osb::execd::zmtp
