// Attacks on the filter itself (SC-02 to SC-13): each is refused under it, and shown to work, or at least to be
// answered differently, without it.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <termios.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "launch/filter_reference.h"
#include "tests/kernel/seccomp_child.h"

namespace osb::kernel_test {
namespace {

constexpr std::uint64_t kHighBits[] = {0, 1ull << 32, 1ull << 63};

// ---- SC-02: other doors into the kernel ---------------------------------------------------------------------------
#if defined(__x86_64__)

Answer int80_getpid() {
  long value = 20;  // getpid of the 32-bit table
  __asm__ volatile("int $0x80" : "+a"(value)::"memory");
  return {.answered = true, .value = value};
}

const char* need_32bit_calls() {
  return ask(kUnfiltered, int80_getpid).succeeded() ? nullptr : "this kernel has no 32-bit calls (CONFIG_IA32_EMULATION)";
}

TEST(SeccompDoors, The32BitDoorKillsTheProcess) {
  NEED(need_32bit_calls());
  EXPECT_GT(ask(kUnfiltered, int80_getpid).value, 0);
  for (SyscallProfile profile : kProfiles) EXPECT_TRUE(ask(profile, int80_getpid).killed()) << name_of(profile);
}

TEST(SeccompDoors, TheX32DoorKillsTheProcess) {
  constexpr std::uint64_t kX32GetPid = launch::kX32Bit | 39;
  EXPECT_TRUE(ask(kUnfiltered, kX32GetPid).answered);
  for (SyscallProfile profile : kProfiles) {
    EXPECT_TRUE(ask(profile, kX32GetPid).killed()) << name_of(profile);
    EXPECT_TRUE(ask(profile, SYS_getpid).succeeded()) << name_of(profile);
  }
}

// The smallest 32-bit program: exit(42).
int make_32bit_program() {
  constexpr unsigned char kProgram[] = {
      0x7f, 'E', 'L', 'F', 1,    1,    1,    0, 0,    0,    0,    0,    0,    0,    0,    0,  // 32 bit, little-endian
      2,    0,   3,   0,   1,    0,    0,    0, 0x54, 0x80, 0x04, 0x08, 0x34, 0,    0,    0,
      0,    0,   0,   0,                                                                         // executable, i386, entry, headers
      0,    0,   0,   0,   0x34, 0,    0x20, 0, 1,    0,    0,    0,    0,    0,    0,    0,     // one program header
      1,    0,   0,   0,   0,    0,    0,    0, 0x00, 0x80, 0x04, 0x08, 0x00, 0x80, 0x04, 0x08,  // load at 0x08048000
      0x60, 0,   0,   0,   0x60, 0,    0,    0, 5,    0,    0,    0,    0x00, 0x10, 0,    0,     // 0x60 bytes, read and execute
      0xb8, 1,   0,   0,   0,    0xbb, 42,   0, 0,    0,    0xcd, 0x80,                          // eax = exit, ebx = 42, int 0x80
  };
  static_assert(sizeof kProgram == 0x60);
  int fd = ::memfd_create("exit42", 0);
  return ::write(fd, kProgram, sizeof kProgram) == static_cast<ssize_t>(sizeof kProgram) ? fd : -1;
}

TEST(SeccompDoors, A32BitProgramDiesAtItsFirstCall) {
  NEED(need_32bit_calls());
  int program = make_32bit_program();
  ASSERT_GE(program, 0);
  auto run = [program] {
    char name[] = "exit42";
    char* argv[] = {name, nullptr};
    ::fexecve(program, argv, environ);
    return 1;
  };
  EXPECT_EQ(under(kUnfiltered, run), Ended{.code = 42});
  for (SyscallProfile profile : kProfiles) EXPECT_EQ(under(profile, run), Ended{.signal = SIGSYS}) << name_of(profile);
  ::close(program);
}

TEST(SeccompDoors, AFilterForAnotherArchitectureLoadsAndKillsTheNextCall) {
  for (SyscallProfile profile : kProfiles) {
    launch::Filter foreign = *launch::compile_filter(profile, launch::Arch::aarch64);
    Ended ended = under(kUnfiltered, [&] { return launch::load_filter(foreign) == 0 ? 0 : 1; });
    EXPECT_EQ(ended, Ended{.signal = SIGSYS}) << name_of(profile);
  }
}
#endif

// ---- SC-03, SC-04: arguments with high bits -----------------------------------------------------------------------

struct SocketCall {
  const char* what;
  std::uint64_t domain, type, protocol;
};
constexpr SocketCall kForbiddenSockets[] = {
    {"AF_ALG", 38, 5, 0},           {"AF_VSOCK", 40, 1, 0},    {"packet", 17, 3, 0x300},  {"packet datagram", 17, 2, 0x300},
    {"raw ICMP", 2, 3, 1},          {"raw ICMPv6", 10, 3, 58}, {"inet packet", 2, 10, 0}, {"netfilter netlink", 16, 3, 12},
    {"kobject netlink", 16, 3, 15}, {"XDP", 44, 3, 0},
};

TEST(SeccompSockets, ForbiddenOnesAreNeverMadeWhateverTheHighBitsAre) {
  for (SyscallProfile profile : kProfiles)
    for (const SocketCall& call : kForbiddenSockets)
      for (std::uint64_t a : kHighBits)
        for (std::uint64_t b : kHighBits)
          for (std::uint64_t c : kHighBits) {
            Answer answer = ask(profile, SYS_socket, {call.domain | a, call.type | b, call.protocol | c});
            EXPECT_TRUE(answer.answered && answer.error != 0) << name_of(profile) << " " << call.what << " " << a << " " << b << " " << c;
          }
}

TEST(SeccompSockets, WithoutTheFilterTheKernelIgnoresTheHighBits) {
  NEED(need_root());
  for (std::uint64_t high : kHighBits) {
    EXPECT_TRUE(ask(kUnfiltered, SYS_socket, {17 | high, 3, 0x300}).succeeded()) << high;
    EXPECT_TRUE(ask(kUnfiltered, SYS_socket, {2 | high, 3, 1}).succeeded()) << high;
    EXPECT_TRUE(ask(kUnfiltered, SYS_socket, {16, 3 | high, 15}).succeeded()) << high;
  }
}

TEST(SeccompSockets, OrdinaryOnesAreMadeExceptInMinimal) {
  constexpr SocketCall kOrdinary[] = {{"unix", 1, 1, 0}, {"unix seqpacket", 1, 5, 0}, {"tcp", 2, 1 | SOCK_CLOEXEC, 0},
                                      {"udp", 2, 2, 0},  {"tcp6", 10, 1, 0},          {"route netlink", 16, 3, 0}};
  for (const SocketCall& call : kOrdinary) {
    Words args = {call.domain, call.type, call.protocol};
    if (!ask(kUnfiltered, SYS_socket, args).succeeded()) continue;  // a host without IPv6
    EXPECT_TRUE(ask(SyscallProfile::standard, SYS_socket, args).succeeded()) << call.what;
    EXPECT_TRUE(ask(SyscallProfile::permissive, SYS_socket, args).succeeded()) << call.what;
    EXPECT_TRUE(ask(SyscallProfile::minimal, SYS_socket, args).refused_with(EACCES)) << call.what;
  }
}

// A pair is all a minimal payload can make, and it does not listen: accept4 gives it nothing.
TEST(SeccompSockets, InMinimalAccept4ServesOnlyAListenerThatWasHandedOver) {
  auto accept_on_pair = [] {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return Answer{};
    return raw_call(SYS_accept4, {static_cast<std::uint64_t>(pair[0])});
  };
  EXPECT_TRUE(ask(SyscallProfile::minimal, accept_on_pair).refused_with(EINVAL));

  int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage nameless{};
  nameless.ss_family = AF_UNIX;  // the kernel picks an abstract name
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&nameless), sizeof(sa_family_t)), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  socklen_t length = sizeof nameless;
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&nameless), &length), 0);
  int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&nameless), length), 0);
  EXPECT_TRUE(ask(SyscallProfile::minimal, SYS_accept4, {static_cast<std::uint64_t>(listener)}).succeeded());
  ::close(client);
  ::close(listener);
}

struct Terminal {
  int master = -1;
  int slave = -1;
  ~Terminal() {
    ::close(master);
    ::close(slave);
  }
  bool open_raw() {
    if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return false;
    termios raw{};
    ::cfmakeraw(&raw);
    return ::tcsetattr(slave, TCSANOW, &raw) == 0;
  }
  int waiting() const {
    int count = -1;
    ::ioctl(slave, FIONREAD, &count);
    return count;
  }
};

TEST(SeccompTerminal, NoCharacterIsTypedIntoATerminal) {
  NEED(need_root());
  for (std::uint64_t high : kHighBits) {
    Terminal terminal;
    ASSERT_TRUE(terminal.open_raw());
    Words push = {static_cast<std::uint64_t>(terminal.slave), TIOCSTI | high, word("x")};
    for (SyscallProfile profile : kProfiles) EXPECT_TRUE(ask(profile, SYS_ioctl, push).refused_with(EPERM)) << name_of(profile);
    EXPECT_EQ(terminal.waiting(), 0);
    EXPECT_TRUE(ask(kUnfiltered, SYS_ioctl, push).succeeded());
    EXPECT_EQ(terminal.waiting(), 1) << "without the filter the character arrives";
  }
}

TEST(SeccompTerminal, ConsoleAndLineDisciplineStayAsTheyAre) {
  Terminal terminal;
  ASSERT_TRUE(terminal.open_raw());
  auto slave = static_cast<std::uint64_t>(terminal.slave);
  int discipline = 0;
  char screen[8] = {};
  for (std::uint64_t high : kHighBits)
    for (SyscallProfile profile : kProfiles) {
      EXPECT_TRUE(ask(profile, SYS_ioctl, {slave, TIOCSETD | high, word(&discipline)}).refused_with(EPERM));
      EXPECT_TRUE(ask(profile, SYS_ioctl, {slave, TIOCLINUX | high, word(screen)}).refused_with(EPERM));
      EXPECT_TRUE(ask(profile, SYS_ioctl, {slave, TIOCCONS | high, 0}).refused_with(EPERM));
      EXPECT_TRUE(ask(profile, SYS_ioctl, {slave, TIOCGWINSZ | high, word(screen)}).succeeded()) << "other requests pass";
    }
  EXPECT_TRUE(ask(kUnfiltered, SYS_ioctl, {slave, TIOCSETD, word(&discipline)}).succeeded());
  EXPECT_FALSE(ask(kUnfiltered, SYS_ioctl, {slave, TIOCLINUX, word(screen)}).refused_with(EPERM));
}

// ---- SC-05 to SC-08, SC-10, SC-11: named calls --------------------------------------------------------------------

TEST(SeccompCalls, IoUringDoesNotExist) {
  io_uring_params params{};
  for (SyscallProfile profile : kProfiles) {
    EXPECT_TRUE(ask(profile, SYS_io_uring_setup, {8, word(&params)}).refused_with(ENOSYS));
    EXPECT_TRUE(ask(profile, SYS_io_uring_enter).refused_with(ENOSYS));
    EXPECT_TRUE(ask(profile, SYS_io_uring_register).refused_with(ENOSYS));
  }
}

TEST(SeccompCalls, KernelSurfaceIsRefusedAndKeyringsDoNotExist) {
  for (SyscallProfile profile : kProfiles) {
    for (long nr : {SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_fanotify_init, SYS_open_by_handle_at})
      EXPECT_TRUE(ask(profile, static_cast<std::uint64_t>(nr)).refused_with(EPERM)) << nr;
    for (long nr : {SYS_add_key, SYS_keyctl, SYS_request_key})
      EXPECT_TRUE(ask(profile, static_cast<std::uint64_t>(nr)).refused_with(ENOSYS)) << nr;
  }
}

// KILL_PROCESS, not KILL_THREAD: the thread that did not call dies too.
TEST(SeccompCalls, MachineCallsEndTheWholeProcess) {
  auto from_second_thread = [](long nr) {
    return [nr] {
      std::thread second([nr] { ::syscall(nr, 0, 0, 0); });
      second.join();
      return 0;
    };
  };
  for (SyscallProfile profile : kProfiles) {
    for (long nr : {SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_reboot, SYS_swapon, SYS_swapoff})
      EXPECT_EQ(under(profile, from_second_thread(nr)), Ended{.signal = SIGSYS}) << nr;
    EXPECT_EQ(under(profile, from_second_thread(SYS_getpid)), Ended{.code = 0});
  }
}

TEST(SeccompCalls, NamespacesOnlyInPermissive) {
  NEED(need_user_namespaces());
  auto clone_newuser = [] {
    Answer answer = raw_call(SYS_clone, {CLONE_NEWUSER | SIGCHLD});
    if (answer.value == 0) ::_exit(0);
    return answer;
  };
  for (std::uint64_t high : kHighBits) {
    EXPECT_TRUE(ask(kUnfiltered, SYS_unshare, {CLONE_NEWUSER}).succeeded());
    EXPECT_TRUE(ask(SyscallProfile::standard, SYS_unshare, {CLONE_NEWUSER | high}).refused_with(EPERM));
  }
  EXPECT_TRUE(ask(kUnfiltered, clone_newuser).succeeded());
  EXPECT_TRUE(ask(SyscallProfile::minimal, clone_newuser).refused_with(EPERM));
  EXPECT_TRUE(ask(SyscallProfile::standard, clone_newuser).refused_with(EPERM));
  EXPECT_TRUE(ask(SyscallProfile::permissive, clone_newuser).succeeded());
  EXPECT_TRUE(ask(SyscallProfile::permissive, SYS_unshare, {CLONE_NEWUSER}).succeeded());
}

TEST(SeccompCalls, DebuggingOnlyInPermissive) {
  EXPECT_TRUE(ask(kUnfiltered, SYS_ptrace, {PTRACE_TRACEME}).succeeded());
  EXPECT_TRUE(ask(SyscallProfile::permissive, SYS_ptrace, {PTRACE_TRACEME}).succeeded());
  for (SyscallProfile profile : {SyscallProfile::minimal, SyscallProfile::standard})
    for (long nr : {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_kcmp})
      EXPECT_TRUE(ask(profile, static_cast<std::uint64_t>(nr)).refused_with(EPERM)) << nr;
}

TEST(SeccompCalls, PersonalityAndPrctlKeepToTheirLists) {
  // Asking for the size of the map is the one form of PR_SET_MM that needs no capability.
  unsigned size = 0;
  Words set_mm = {PR_SET_MM, PR_SET_MM_MAP_SIZE, word(&size)};
  EXPECT_TRUE(ask(kUnfiltered, SYS_personality, {READ_IMPLIES_EXEC}).succeeded());
  EXPECT_FALSE(ask(kUnfiltered, SYS_prctl, set_mm).refused_with(EPERM));
  for (SyscallProfile profile : kProfiles)
    for (std::uint64_t high : kHighBits) {
      EXPECT_TRUE(ask(profile, SYS_personality, {READ_IMPLIES_EXEC | high}).refused_with(EPERM));
      EXPECT_TRUE(ask(profile, SYS_personality, {ADDR_NO_RANDOMIZE | high}).succeeded());
      EXPECT_TRUE(ask(profile, SYS_personality, {0xffffffff | high}).succeeded());
      EXPECT_TRUE(ask(profile, SYS_prctl, {set_mm[0] | high, set_mm[1], set_mm[2]}).refused_with(EPERM));
      EXPECT_TRUE(ask(profile, SYS_prctl, {PR_SET_NAME | high, word("quiet")}).succeeded());
    }
}

TEST(SeccompCalls, DeviceNodesAreNeverMade) {
  NEED(need_root());
  constexpr std::uint64_t kCharacterNull = (1 << 8) | 3;
  auto make = [](std::uint64_t mode) {
    return [mode] {
      std::string path = "/tmp/osb-seccomp-node-" + std::to_string(::getpid());
      Answer answer = raw_call(SYS_mknodat, {static_cast<std::uint64_t>(AT_FDCWD), word(path.c_str()), mode, kCharacterNull});
      ::unlink(path.c_str());
      return answer;
    };
  };
  EXPECT_TRUE(ask(kUnfiltered, make(S_IFCHR | 0600)).succeeded());
  for (SyscallProfile profile : kProfiles) {
    for (std::uint64_t high : kHighBits) EXPECT_TRUE(ask(profile, make(S_IFCHR | 0600 | high)).refused_with(EPERM));
    EXPECT_TRUE(ask(profile, make(S_IFIFO | 0600)).succeeded());
  }
}

// ---- SC-09, SC-12, SC-13: the filter stays ------------------------------------------------------------------------

launch::Filter answering(std::uint32_t nr, std::uint32_t word_for_it) {
  return {{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
           {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, nr},
           {BPF_RET | BPF_K, 0, 0, word_for_it},
           {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
}

// Each loads a second filter that would rather let `mount` through, and then tries it.
TEST(SeccompStacking, AFilterOfThePayloadCannotLoosenOurs) {
  struct Attempt {
    const char* what;
    std::uint32_t word;
    unsigned flags;
  };
  constexpr Attempt kAttempts[] = {
      {"allow", SECCOMP_RET_ALLOW, 0},
      {"allow on all threads", SECCOMP_RET_ALLOW, SECCOMP_FILTER_FLAG_TSYNC},
      {"trace", SECCOMP_RET_TRACE, 0},
      {"log", SECCOMP_RET_LOG, 0},
      {"notify", SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER},
  };
  for (SyscallProfile profile : {SyscallProfile::standard, SyscallProfile::permissive})
    for (const Attempt& attempt : kAttempts) {
      auto then_call = [&](long nr) {
        launch::Filter second = answering(static_cast<std::uint32_t>(nr), attempt.word);
        return ask(profile, [&] {
          return launch::load_filter(second, attempt.flags) < 0 ? Answer{} : raw_call(static_cast<std::uint64_t>(nr), {});
        });
      };
      EXPECT_TRUE(then_call(SYS_bpf).refused_with(EPERM)) << attempt.what;
      EXPECT_TRUE(then_call(SYS_keyctl).refused_with(ENOSYS)) << attempt.what;
      EXPECT_TRUE(then_call(SYS_reboot).killed()) << attempt.what;
    }
}

TEST(SeccompStacking, AFilterOfThePayloadCanTightenOurs) {
  launch::Filter no_getppid = answering(SYS_getppid, SECCOMP_RET_ERRNO | EACCES);
  auto tightened = [&] { return launch::load_filter(no_getppid) < 0 ? Answer{} : raw_call(SYS_getppid, {}); };
  EXPECT_TRUE(ask(SyscallProfile::standard, SYS_getppid).succeeded());
  EXPECT_TRUE(ask(SyscallProfile::standard, tightened).refused_with(EACCES));
  EXPECT_FALSE(ask(SyscallProfile::minimal, tightened).answered) << "minimal has no seccomp call";
}

int grep_seccomp_in(const char* file) {
  ::execlp("grep", "grep", "-q", "^Seccomp:[[:space:]]*2$", file, static_cast<char*>(nullptr));
  return 127;
}

TEST(SeccompInheritance, ForksThreadsAndProgramsKeepTheFilter) {
  auto in_fork = [] {
    for (int i = 0; i < 100; ++i)
      if (in_child([] { return raw_call(SYS_bpf, {}).error == EPERM && raw_call(SYS_mount, {}).error == EPERM ? 0 : 1; }) != 0) return 1;
    return 0;
  };
  auto in_thread = [] {
    int wrong = 0;
    for (int i = 0; i < 100; ++i) std::thread([&] { wrong += raw_call(SYS_mount, {}).error != EPERM; }).join();
    return wrong;
  };
  for (SyscallProfile profile : {SyscallProfile::minimal, SyscallProfile::standard}) {
    EXPECT_EQ(under(profile, in_fork), Ended{.code = 0});
    EXPECT_EQ(under(profile, in_thread), Ended{.code = 0});
    EXPECT_EQ(under(profile, [] { return grep_seccomp_in("/proc/self/status"); }), Ended{.code = 0});
  }
  EXPECT_EQ(under(kUnfiltered, [] { return grep_seccomp_in("/proc/self/status"); }), Ended{.code = 1});
}

// The filter of a stopped child, as the kernel holds it; nullopt where the kernel does not tell.
std::optional<std::vector<sock_filter>> filter_of(pid_t pid) {
  long length = ::syscall(SYS_ptrace, 0x420c, pid, 0, nullptr);  // PTRACE_SECCOMP_GET_FILTER
  if (length < 0) return std::nullopt;
  std::vector<sock_filter> code(static_cast<std::size_t>(length));
  ::syscall(SYS_ptrace, 0x420c, pid, 0, code.data());
  return code;
}

TEST(SeccompReadback, TheKernelHoldsExactlyWhatWasCompiled) {
  NEED(need_root());
  for (SyscallProfile profile : kProfiles) {
    compiled(profile);
    pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::ptrace(PTRACE_TRACEME);
      if (!enter_filter(profile)) ::_exit(1);
      ::raise(SIGSTOP);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSTOPPED(status));
    auto held = filter_of(pid);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
    NEED(held ? nullptr : "this kernel does not give filters back (CONFIG_CHECKPOINT_RESTORE)");
    const auto& ours = compiled(profile).code;
    ASSERT_EQ(held->size(), ours.size());
    EXPECT_EQ(std::memcmp(held->data(), ours.data(), ours.size() * sizeof(sock_filter)), 0) << name_of(profile);
  }
}

// ---- cost ---------------------------------------------------------------------------------------------------------

std::int64_t nanos() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

double median_load_micros(const launch::Filter& filter) {
  constexpr std::size_t kSamples = 101;
  auto took = make_shared_array<std::int64_t>(kSamples);
  for (std::size_t i = 0; i < kSamples; ++i)
    under(kUnfiltered, [&] {
      std::int64_t before = nanos();
      int loaded = launch::load_filter(filter);
      took[i] = loaded == 0 ? nanos() - before : -1;
      return 0;
    });
  std::sort(&took[0], &took[0] + kSamples);
  EXPECT_GT(took[0], 0) << "a load failed";
  return static_cast<double>(took[kSamples / 2]) / 1000;
}

// Prints what loading costs; times are for people, the test only insists that both programs load.
TEST(SeccompCost, LoadingATreeAndALinearProgram) {
  for (SyscallProfile profile : kProfiles) {
    launch::Filter linear = launch::reference::compile_linear(launch::table_of(profile));
    double tree_micros = median_load_micros(compiled(profile));
    double linear_micros = median_load_micros(linear);
    std::printf("  %-10s tree %3zu instructions %6.1f us   linear %3zu instructions %6.1f us\n", std::string(name_of(profile)).c_str(),
                compiled(profile).code.size(), tree_micros, linear.code.size(), linear_micros);
  }
}

}  // namespace
}  // namespace osb::kernel_test
