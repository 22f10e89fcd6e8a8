// What every kernel test shares: a loud skip, children that cannot hurt the test program, and probes of the host.
//
// NEED(probe) stands first in a test. A probe answers nullptr when the host can run the test, otherwise one sentence
// that says what is missing. The test is then skipped on a laptop and fails where OSB_TESTS_MUST_RUN=1 is set.
//
// Bodies given to in_child()/run_child() run after fork() in a copy of the test program: no gtest assertion in there
// (nobody would hear it), speak through the exit code or memory from make_shared_array().
#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace osb::kernel_test {

inline bool must_run() {
  const char* value = std::getenv("OSB_TESTS_MUST_RUN");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

#define NEED(probe)                                                                                    \
  do {                                                                                                 \
    if (const char* need_missing_ = (probe); need_missing_ != nullptr) {                               \
      if (osb::kernel_test::must_run()) FAIL() << "OSB_TESTS_MUST_RUN is set, but: " << need_missing_; \
      GTEST_SKIP() << need_missing_;                                                                   \
    }                                                                                                  \
  } while (0)

// How a child ended: exactly one of the three.
struct Ended {
  int code = -1;           // exit code, -1 when it did not exit by itself
  int signal = 0;          // the signal that ended it
  bool timed_out = false;  // it ran past its time and was killed by us
  bool operator==(const Ended&) const = default;
};

inline std::string text_of(const Ended& ended) {
  if (ended.timed_out) return "timed out";
  if (ended.signal != 0) return "signal " + std::to_string(ended.signal);
  return "exit code " + std::to_string(ended.code);
}
inline void PrintTo(const Ended& ended, std::ostream* out) { *out << text_of(ended); }

inline Ended reap(pid_t pid, std::chrono::milliseconds limit) {
  int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  pollfd ready{.fd = pidfd, .events = POLLIN, .revents = 0};
  int polled = 0;
  do {
    polled = ::poll(&ready, 1, static_cast<int>(limit.count()));
  } while (polled < 0 && errno == EINTR);
  if (polled == 0) ::kill(pid, SIGKILL);
  ::close(pidfd);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (polled == 0) return {.timed_out = true};
  return WIFEXITED(status) ? Ended{.code = WEXITSTATUS(status)} : Ended{.signal = WTERMSIG(status)};
}

// Runs `body` in a forked child that dies with the test program; its value becomes the exit code.
inline Ended run_child(const std::function<int()>& body, std::chrono::milliseconds limit = std::chrono::seconds(30)) {
  pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(body());
  }
  return reap(pid, limit);
}

// The short form: the exit code, or 128 + signal (137 also for a child that ran past its time).
inline int in_child(const std::function<int()>& body) {
  Ended ended = run_child(body);
  if (ended.timed_out) return 128 + SIGKILL;
  return ended.signal != 0 ? 128 + ended.signal : ended.code;
}

// Zeroed memory that children write and the test program reads; lives as long as the pointer.
template <class T>
auto make_shared_array(std::size_t count) {
  auto unmap = [bytes = count * sizeof(T)](T* at) { ::munmap(at, bytes); };
  void* at = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::abort();
  return std::unique_ptr<T[], decltype(unmap)>(static_cast<T*>(at), unmap);
}

// ---- probes -----------------------------------------------------------------------------------------------------

inline const char* need_root() { return ::geteuid() == 0 ? nullptr : "this test needs root: run it with sudo"; }

inline const char* need_user_namespaces() {
  static const bool works = in_child([] { return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 ? 0 : 1; }) == 0;
  return works ? nullptr : "the kernel refuses user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)";
}

// A tool found on PATH; `name` is also the sentence's subject.
inline bool has_tool(const char* name) {
  std::string command = std::string("command -v ") + name + " >/dev/null 2>&1";
  return in_child([&command] {
           ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
           return 127;
         }) == 0;
}

}  // namespace osb::kernel_test
