#include <fcntl.h>
#include <sys/stat.h>

#include "http/test_player.h"

namespace osb::http {
namespace {

using namespace std::chrono_literals;

TEST(Server, ListensOnAUnixSocketWithItsModeAndRemovesItAtTheEnd) {
  Seen seen;
  TempDir dir;
  auto path = dir.file("s");
  {
    TestBed bed(player(seen));
    ASSERT_TRUE(bed.server().listen_unix(path, 0600));
    struct stat made{};
    ASSERT_EQ(::stat(path.c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777u, 0600u);
    auto busy = bed.server().listen_unix(path, 0600);
    ASSERT_FALSE(busy);
    EXPECT_EQ(busy.error().kind(), Errc::conflict);
    auto got = wait_for(bed.io(), fetch(Target::unix_socket(path), request_of("GET", "/hello"), 5s, 100));
    ASSERT_TRUE(got) << got.error().what();
    EXPECT_EQ(got->body, "hello");
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(Server, ReplacesAStaleSocketButNoOtherFile) {
  Seen seen;
  TempDir dir;
  auto stale = dir.file("s");
  {
    auto left_behind = listen_on_unix(stale, 0600);
  }
  ASSERT_EQ(::access(stale.c_str(), F_OK), 0);
  auto plain = dir.file("plain");
  {
    Fd made(::open(plain.c_str(), O_CREAT | O_WRONLY, 0600));
  }
  TestBed bed(player(seen));
  EXPECT_TRUE(bed.server().listen_unix(stale, 0666));
  auto refused = bed.server().listen_unix(plain, 0600);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), Errc::conflict);
  EXPECT_FALSE(bed.server().listen_unix(std::string(200, 'x'), 0600));
}

TEST(Server, AdoptsAListeningDescriptorOnly) {
  Seen seen;
  TempDir dir;
  auto listener = listen_on_unix(dir.file("t"), 0600);
  ASSERT_TRUE(listener);
  TestBed bed(player(seen));
  EXPECT_TRUE(bed.server().listen_fd(std::move(listener->fd)));
  auto got = wait_for(bed.io(), fetch(Target::unix_socket(dir.file("t")), request_of("GET", "/hello"), 5s, 100));
  ASSERT_TRUE(got) << got.error().what();
  EXPECT_EQ(got->body, "hello");
  EXPECT_FALSE(bed.server().listen_fd(Fd(::socket(AF_UNIX, SOCK_STREAM, 0))));
  EXPECT_FALSE(bed.server().listen_fd(Fd(::dup(0))));
}

TEST(Server, SaysWhenAPortIsTakenOrAnAddressMakesNoSense) {
  Seen seen;
  TestBed bed(player(seen));
  auto taken = bed.server().listen_tcp("127.0.0.1", bed.port());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind(), Errc::conflict);
  EXPECT_FALSE(bed.server().listen_tcp("example.org", 0));
}

}  // namespace
}  // namespace osb::http
