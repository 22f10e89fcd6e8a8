#include "sys/peer_owner.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

namespace osb::sys {
namespace {

struct Place {
  sockaddr_storage address{};
  socklen_t size = 0;
};

Place v4(in_port_t port) {
  Place out;
  auto& in = reinterpret_cast<sockaddr_in&>(out.address);
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  in.sin_port = port;
  out.size = sizeof in;
  return out;
}

Place v6(const char* text, in_port_t port) {
  Place out;
  auto& in = reinterpret_cast<sockaddr_in6&>(out.address);
  in.sin6_family = AF_INET6;
  ::inet_pton(AF_INET6, text, &in.sin6_addr);
  in.sin6_port = port;
  out.size = sizeof in;
  return out;
}

// A listener at `at`, and the port it got.
class Listener {
 public:
  explicit Listener(Place at) : fd(::socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at.address), at.size), 0);
    EXPECT_EQ(::listen(fd.get(), 8), 0);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at.address), &at.size);
    port = reinterpret_cast<sockaddr_in&>(at.address).sin_port;
  }
  Fd accept() const { return Fd(::accept4(fd.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  Fd fd;
  in_port_t port = 0;
};

Fd dial(Place to) {
  Fd fd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to.address), to.size), 0);
  return fd;
}

TEST(PeerOwner, IsTheUserOfTheOtherEndOverEveryKindOfAddress) {
  Listener four(v4(0));
  auto client = dial(v4(four.port));
  auto server = four.accept();
  EXPECT_EQ(peer_owner(server.get()), ::geteuid());
  auto mapped = dial(v6("::ffff:127.0.0.1", four.port));
  auto mapped_server = four.accept();
  EXPECT_EQ(peer_owner(mapped_server.get()), ::geteuid());
  Listener six(v6("::1", 0));
  auto client6 = dial(v6("::1", six.port));
  auto server6 = six.accept();
  EXPECT_EQ(peer_owner(server6.get()), ::geteuid());
}

TEST(PeerOwner, IsNobodyOnceTheOtherEndIsClosed) {
  Listener four(v4(0));
  auto client = dial(v4(four.port));
  auto server = four.accept();
  ASSERT_TRUE(peer_owner(server.get()));
  client = Fd();
  EXPECT_FALSE(peer_owner(server.get()));
  EXPECT_FALSE(peer_owner(-1));
}

TEST(PeerOwner, TellsAnotherUserFromOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  Listener four(v4(0));
  int hold[2];
  ASSERT_EQ(::pipe(hold), 0);
  pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(4711) != 0 || ::setuid(4711) != 0) ::_exit(1);
    auto to = v4(four.port);
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&to.address), to.size) != 0) ::_exit(2);
    ::close(hold[1]);
    char byte;
    (void)!::read(hold[0], &byte, 1);  // until the parent has looked
    ::_exit(0);
  }
  auto server = four.accept();
  EXPECT_EQ(peer_owner(server.get()), 4711u);
  ::close(hold[1]);
  ::close(hold[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace osb::sys
