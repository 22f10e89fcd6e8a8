#include "cli/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

struct Ends {
  Fd a, b;
};

Ends socket_pair() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

Ends pipe_pair() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

std::string framed(FrameType type, std::string_view payload) {
  std::string out;
  append_frame(out, type, payload);
  return out;
}

std::string read_all(int fd) {
  std::string out;
  char bytes[65536];
  for (ssize_t n; (n = ::read(fd, bytes, sizeof bytes)) > 0;) out.append(bytes, static_cast<std::size_t>(n));
  return out;
}

// What the other side of the conversation got, as frames.
struct Said {
  std::string input;
  int ends = 0;
  std::vector<int> signals;
};
Said decode(std::string_view bytes) {
  Said said;
  while (bytes.size() >= kFrameHead) {
    std::size_t length = 0;
    for (std::size_t i = 1; i < kFrameHead; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
    auto payload = bytes.substr(kFrameHead, length);
    if (bytes[0] == 0) said.input += payload;
    if (bytes[0] == 1) ++said.ends;
    if (bytes[0] == 2) said.signals.push_back(payload[0]);
    bytes.remove_prefix(kFrameHead + length);
  }
  return said;
}

constexpr std::string_view kFine = R"({"exit_code":0,"cause":"exited"})";

class SessionTest : public ::testing::Test {
 protected:
  Ends socket_ = socket_pair();
  Ends in_ = pipe_pair(), out_ = pipe_pair(), err_ = pipe_pair();

  Result<Outcome> carry(Signals* signals = nullptr) {
    Session session(socket_.a.get(), {}, {in_.a.get(), out_.b.get(), err_.b.get()}, signals);
    auto outcome = session.run();
    socket_.a.reset();
    return outcome;
  }
  void say(const std::string& bytes) { ASSERT_TRUE(write_all(socket_.b.get(), bytes)); }
};

TEST_F(SessionTest, KeepsTheStreamsApartAndByteExact) {
  std::string every;
  for (int i = 0; i < 256; ++i) every += static_cast<char>(i);
  say(framed(FrameType::output, every) + framed(FrameType::error_output, "err") + framed(FrameType::output, "tail") +
      framed(FrameType::end, kFine));
  auto outcome = carry();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(exit_status_of(*outcome), 0);
  out_.b.reset();
  err_.b.reset();
  EXPECT_EQ(read_all(out_.a.get()), every + "tail");
  EXPECT_EQ(read_all(err_.a.get()), "err");
}

TEST_F(SessionTest, CarriesInputToItsEnd) {
  std::string data(1'000'000, 'x');
  data[500'000] = '\0';
  std::thread writer([&] {
    write_all(in_.b.get(), data);
    in_.b.reset();
  });
  std::string got;
  std::thread peer([&] {
    char bytes[65536];
    while (!got.ends_with(std::string_view("\1\0\0\0\0", 5))) {
      auto n = ::read(socket_.b.get(), bytes, sizeof bytes);
      if (n <= 0) break;
      got.append(bytes, static_cast<std::size_t>(n));
    }
    write_all(socket_.b.get(), framed(FrameType::end, kFine));
  });
  EXPECT_TRUE(carry());
  writer.join();
  peer.join();
  auto said = decode(got);
  EXPECT_EQ(said.input, data);
  EXPECT_EQ(said.ends, 1);
}

TEST_F(SessionTest, WaitsForAReaderThatIsSlow) {
  std::string data(3'000'000, 'y');
  std::thread peer([&] {
    std::string_view rest = data;
    while (!rest.empty()) {
      auto part = rest.substr(0, kMaxFramePayload);
      write_all(socket_.b.get(), framed(FrameType::output, part));
      rest.remove_prefix(part.size());
    }
    write_all(socket_.b.get(), framed(FrameType::end, kFine));
  });
  std::string got;
  std::thread reader([&] { got = read_all(out_.a.get()); });
  EXPECT_TRUE(carry());
  out_.b.reset();
  peer.join();
  reader.join();
  EXPECT_EQ(got, data);
}

TEST_F(SessionTest, ForwardsSignals) {
  Signals signals;
  ::raise(SIGUSR1);
  std::string got;
  std::thread peer([&] {
    char bytes[64];
    auto n = ::read(socket_.b.get(), bytes, sizeof bytes);
    got.assign(bytes, n > 0 ? static_cast<std::size_t>(n) : 0);
    write_all(socket_.b.get(), framed(FrameType::end, R"({"exit_code":138,"signal":10,"cause":"signalled"})"));
  });
  auto outcome = carry(&signals);
  peer.join();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(decode(got).signals, std::vector<int>{SIGUSR1});
  EXPECT_EQ(exit_status_of(*outcome), 128 + SIGUSR1);
}

TEST_F(SessionTest, ASecondInterruptEndsIt) {
  Signals signals;
  std::thread peer([&] {
    char bytes[64];
    EXPECT_GT(::read(socket_.b.get(), bytes, sizeof bytes), 0);  // the first one arrived; the command does not care
    ::kill(::getpid(), SIGINT);
  });
  ::kill(::getpid(), SIGINT);
  auto outcome = carry(&signals);
  peer.join();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Outcome::Kind::interrupted);
  EXPECT_EQ(exit_status_of(*outcome), 130);
}

TEST_F(SessionTest, TellsTheCommandThatNobodyReads) {
  Signals signals;  // SIGPIPE becomes EPIPE
  out_.a.reset();
  say(framed(FrameType::output, "lost"));
  std::string got;
  std::thread peer([&] {
    char bytes[64];
    auto n = ::read(socket_.b.get(), bytes, sizeof bytes);
    got.assign(bytes, n > 0 ? static_cast<std::size_t>(n) : 0);
    write_all(socket_.b.get(), framed(FrameType::end, R"({"exit_code":141,"signal":13,"cause":"signalled"})"));
  });
  auto outcome = carry(&signals);
  peer.join();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(decode(got).signals, std::vector<int>{SIGPIPE});
  EXPECT_EQ(exit_status_of(*outcome), 141);
}

TEST_F(SessionTest, GivesUpOnACommandThatWritesToNobodyForEver) {
  Signals signals;
  out_.a.reset();
  say(framed(FrameType::output, "lost"));
  auto outcome = carry(&signals);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Outcome::Kind::broken_pipe);
  EXPECT_EQ(exit_status_of(*outcome), 141);
}

TEST_F(SessionTest, AFullDiskIsOurFailure) {
  Signals signals;
  Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  say(framed(FrameType::output, "lost"));
  Session session(socket_.a.get(), {}, {-1, full.get(), err_.b.get()}, &signals);
  auto outcome = session.run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().sys(), ENOSPC);
}

TEST_F(SessionTest, AnEndWithoutAWordIsAnError) {
  say(framed(FrameType::output, "half"));
  socket_.b.reset();
  auto outcome = carry();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind(), Errc::unavailable);
}

TEST_F(SessionTest, BytesBehindTheUpgradeCountToo) {
  {
    Session session(socket_.a.get(), framed(FrameType::output, "early") + framed(FrameType::end, kFine), {-1, out_.b.get(), err_.b.get()},
                    nullptr);
    EXPECT_TRUE(session.run());
  }
  out_.b.reset();
  EXPECT_EQ(read_all(out_.a.get()), "early");
}

TEST_F(SessionTest, TicksWhileItWaits) {
  Session session(socket_.a.get(), {}, {-1, out_.b.get(), err_.b.get()}, nullptr);
  int ticks = 0;
  session.every(Millis(5), [&] {
    if (++ticks == 3) say(framed(FrameType::end, kFine));
  });
  EXPECT_TRUE(session.run());
  EXPECT_GE(ticks, 3);
}

TEST_F(SessionTest, TheNetCatchesACommandThatNeverEnds) {
  Session session(socket_.a.get(), {}, {-1, out_.b.get(), err_.b.get()}, nullptr);
  session.give_up_after(Millis(20));
  auto outcome = session.run();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(exit_status_of(*outcome), kExitTimedOut);
}

TEST(Outcome, MapsEveryEnd) {
  auto ended = [](int code, int signal, const char* cause) { return exit_status_of({Outcome::Kind::ended, {code, signal, cause, {}}}); };
  EXPECT_EQ(ended(3, 0, "exited"), 3);
  EXPECT_EQ(ended(137, 9, "signalled"), 137);
  EXPECT_EQ(ended(0, 15, "signalled"), 143);
  EXPECT_EQ(ended(124, 9, "timed_out"), 124);
  EXPECT_EQ(ended(127, 0, "not_found"), 127);
  EXPECT_EQ(ended(126, 0, "not_found"), 126);
  EXPECT_EQ(ended(137, 9, "out_of_memory"), 137);
}

}  // namespace
}  // namespace osb::cli
