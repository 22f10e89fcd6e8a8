#include "launch/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "sys/descriptor_message.h"
#include "sys/pipe.h"

namespace osb::launch {
namespace {

class Behind : public testing::Test {
 protected:
  Behind() : channel_(Fd()) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
    channel_ = Channel(Fd(ends[0]));
    peer_ = Fd(ends[1]);
  }
  // Numbers, until the peer's socket holds no more of them, and a few after that.
  std::uint64_t fill(std::uint64_t more) {
    std::uint64_t n = 0;
    for (; !channel_.is_behind(); ++n) EXPECT_TRUE(channel_.send(&n, sizeof n));
    for (auto end = n + more; n < end; ++n) EXPECT_TRUE(channel_.send(&n, sizeof n));
    return n;
  }
  bool read(std::uint64_t& number, Fd& descriptor) {
    return sys::receive_with_descriptor(peer_.get(), &number, sizeof number, MSG_DONTWAIT, descriptor) == sizeof number;
  }

  Channel channel_;
  Fd peer_;
};

TEST_F(Behind, APeerThatReadsLateGetsEverythingInOrder) {
  auto sent = fill(1000);
  std::uint64_t expected = 0;
  while (expected < sent) {
    Fd none;
    for (std::uint64_t number = 0; read(number, none); ++expected) ASSERT_EQ(number, expected);
    ASSERT_TRUE(channel_.send_waiting());
  }
  EXPECT_FALSE(channel_.is_behind());
}

TEST_F(Behind, ADescriptorThatWaitsIsACopyOfItsOwn) {
  fill(0);
  auto pipe = sys::make_pipe();
  ASSERT_TRUE(pipe);
  std::uint64_t last = ~0ull;
  ASSERT_TRUE(channel_.send(&last, sizeof last, pipe->write.get()));
  pipe->write.reset();
  Fd received;
  for (std::uint64_t number = 0; number != last;) {
    ASSERT_TRUE(channel_.send_waiting());
    while (number != last && read(number, received)) {
    }
  }
  ASSERT_TRUE(received);
  EXPECT_EQ(::write(received.get(), "x", 1), 1);
}

TEST_F(Behind, APeerThatHasGoneIsAnError) {
  fill(10);
  peer_.reset();
  EXPECT_FALSE(channel_.send_waiting());
}

TEST_F(Behind, APeerThatNeverReadsIsGivenUp) {
  fill(0);
  std::uint64_t n = 0;
  bool refused = false;
  for (; n < 1'000'000 && !refused; ++n) refused = !channel_.send(&n, sizeof n);
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace osb::launch
