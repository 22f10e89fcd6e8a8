#include "grpc_door/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "http/listener.h"
#include "sys/pipe.h"
#include "sys/raw.h"

namespace osb::grpc_door {
namespace {

bool can_read_files() { return Fd(::open("/etc/passwd", O_RDONLY | O_CLOEXEC)).get() >= 0; }
bool can_be_dumped() { return ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0; }
bool can_gain_privileges() { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1; }
bool can_change_root() { return ::chroot("/") == 0; }  // a capability that shows without a file

bool can_connect(std::uint16_t port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = http::tcp_address("127.0.0.1", port);
  return ::connect(fd.get(), address->get(), address->size) == 0;
}

// What `body` writes in a child of its own, which may lock itself in as it likes.
std::string in_child(const std::function<std::string()>& body) {
  auto pipe = sys::make_pipe();
  pid_t child = ::fork();
  if (child == 0) {
    auto text = body();
    bool told = ::write(pipe->write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(told ? 0 : 1);
  }
  pipe->write.reset();
  char text[4096];
  ssize_t size = ::read(pipe->read.get(), text, sizeof text);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return {text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

// "confined", or the error with its hint.
std::string confine_here() {
  auto done = confine(4, 4);
  return done ? "confined" : cat(done.error().what(), " | ", done.error().hint());
}

std::string still_open() {
  return cat(can_read_files() ? " files" : "", can_be_dumped() ? " dumps" : "", can_gain_privileges() ? " privileges" : "",
             can_change_root() ? " capabilities" : "");
}

// From here on this process sees a kernel that was built without Landlock.
bool hide_landlock() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Why a test is left out, where nobody can overlook it; nullptr: it runs.
const char* lacks_landlock(int needed, const char* since) {
  int abi = sys::raw::landlock_abi();
  if (abi >= needed) return nullptr;
  utsname kernel{};
  ::uname(&kernel);
  static std::string why;
  why =
      cat("NOT TESTED: needs Landlock ABI ", needed, " (", since, "); this kernel, ", std::string_view(kernel.release), ", has ABI ", abi);
  std::fprintf(stderr, "%s\n", why.c_str());
  return why.c_str();
}

TEST(Confine, FilesDumpsAndPrivilegesAreClosed) {
  if (auto* why = lacks_landlock(1, "files: Linux 5.13 or later, booted with lsm=landlock")) GTEST_SKIP() << why;
  auto before = in_child([] { return "open:" + still_open(); });
  EXPECT_EQ(before, ::geteuid() == 0 ? "open: files dumps privileges capabilities" : "open: files dumps privileges") << "the control";
  EXPECT_EQ(in_child([] { return confine_here() + ", open:" + still_open(); }), "confined, open:");
}

TEST(Confine, OutgoingConnectionsAreClosed) {
  if (auto* why = lacks_landlock(4, "network rules: Linux 6.7 or later")) GTEST_SKIP() << why;
  auto listener = http::listen_on_tcp("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  auto port = http::local_port(listener->fd.get());
  EXPECT_TRUE(can_connect(port)) << "the control: before, it is open";
  EXPECT_EQ(in_child([&] { return cat(confine_here(), can_connect(port) ? ", open" : ", closed"); }), "confined, closed");
}

// A wall that cannot be built is an error, never a warning: the program does not serve without it.
TEST(Confine, WithoutLandlockNothingIsServed) {
  if (auto* why = lacks_landlock(1, "files: Linux 5.13 or later, booted with lsm=landlock")) GTEST_SKIP() << why;
  EXPECT_EQ(in_child(confine_here), "confined") << "the control: the same, with the kernel as it is";
  auto refused = in_child([] { return hide_landlock() ? confine_here() : "the filter did not load"; });
  EXPECT_EQ(refused,
            "this kernel has no Landlock, so opensandbox-grpc could read files of the host | boot with lsm=landlock,... (Linux 5.13 or "
            "later), or serve without gRPC (grpc.enabled: false)");
  auto kind = in_child([] { return hide_landlock() && confine(1, 1).error().kind() == Errc::unsupported ? "never here" : "try again"; });
  EXPECT_EQ(kind, "never here") << "whoever starts the program has no reason to start it again";
}

}  // namespace
}  // namespace osb::grpc_door
