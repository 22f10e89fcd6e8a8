#include "grpc_door/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "http/listener.h"
#include "sys/raw.h"

namespace osb::grpc_door {
namespace {

bool can_read_files() { return Fd(::open("/etc/passwd", O_RDONLY | O_CLOEXEC)).get() >= 0; }

bool can_connect(std::uint16_t port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = http::tcp_address("127.0.0.1", port);
  return ::connect(fd.get(), address->get(), address->size) == 0;
}

// What a child that is confined finds: one bit for each thing that is still open to it, or 100 when it could not be confined.
int confined(std::uint16_t port) {
  if (!confine(4, 4)) return 100;
  return (can_read_files() ? 1 : 0) | (can_connect(port) ? 2 : 0);
}

TEST(Confine, FilesAndOutgoingConnectionsAreClosed) {
  int abi = sys::raw::landlock_abi();
  if (abi < 4) GTEST_SKIP() << "this kernel's Landlock does not know of connections";
  auto listener = http::listen_on_tcp("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  auto port = http::local_port(listener->fd.get());
  EXPECT_TRUE(can_read_files() && can_connect(port)) << "the control: before, both are open";
  pid_t child = ::fork();
  if (child == 0) ::_exit(confined(port));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace osb::grpc_door
