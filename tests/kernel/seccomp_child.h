// Shared by the seccomp kernel tests: one system call in a child of its own, with or without a filter.
#pragma once
#include <unistd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "launch/filter.h"
#include "tests/kernel/kernel_test.h"

namespace osb::kernel_test {

inline constexpr SyscallProfile kProfiles[] = {SyscallProfile::minimal, SyscallProfile::standard, SyscallProfile::permissive};

// nullopt = no filter: the control.
using MaybeProfile = std::optional<SyscallProfile>;
inline constexpr MaybeProfile kUnfiltered = std::nullopt;

inline const launch::Filter& compiled(SyscallProfile profile) {
  static const std::array<launch::Filter, 3> all = {
      *launch::compile_filter(SyscallProfile::minimal),
      *launch::compile_filter(SyscallProfile::standard),
      *launch::compile_filter(SyscallProfile::permissive),
  };
  return all[static_cast<std::size_t>(profile)];
}

inline constexpr int kFilterDidNotLoad = 121;

// Sets no_new_privs in any case, so that filtered and unfiltered children differ in the filter alone.
inline bool enter_filter(MaybeProfile profile) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return !profile || launch::load_filter(compiled(*profile)) == 0;
}

inline Ended under(MaybeProfile profile, const std::function<int()>& body, std::chrono::milliseconds limit = std::chrono::seconds(30)) {
  if (profile) compiled(*profile);  // before the fork: the child loads and does not compile
  return run_child([&] { return enter_filter(profile) ? body() : kFilterDidNotLoad; }, limit);
}

// What came of a call. `answered` is false when the process did not live to see the answer.
struct Answer {
  bool answered = false;
  long value = 0;
  int error = 0;   // errno, 0 on success
  int signal = 0;  // what ended the process

  bool succeeded() const { return answered && error == 0; }
  bool refused_with(int expected) const { return answered && error == expected; }
  bool killed() const { return !answered && signal == SIGSYS; }
};

inline void PrintTo(const Answer& answer, std::ostream* out) {
  if (!answer.answered)
    *out << "ended by signal " << answer.signal;
  else if (answer.error != 0)
    *out << "errno " << answer.error << " (" << std::strerror(answer.error) << ")";
  else
    *out << "value " << answer.value;
}

using Words = std::array<std::uint64_t, 6>;

inline Answer raw_call(std::uint64_t nr, const Words& a) {
  errno = 0;
  long value = ::syscall(static_cast<long>(nr), a[0], a[1], a[2], a[3], a[4], a[5]);
  return {.answered = true, .value = value, .error = value < 0 ? errno : 0};
}

inline Answer ask(MaybeProfile profile, const std::function<Answer()>& question) {
  auto slot = make_shared_array<Answer>(1);
  Ended ended = under(profile, [&] {
    slot[0] = question();
    return 0;
  });
  slot[0].signal = ended.signal;
  return slot[0];
}

inline Answer ask(MaybeProfile profile, std::uint64_t nr, const Words& args = {}) {
  return ask(profile, [&] { return raw_call(nr, args); });
}

template <class T>
std::uint64_t word(T* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace osb::kernel_test
