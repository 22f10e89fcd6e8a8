// Every number, called for real: the kernel answers what the tables say (SC-01). Allowed calls answer as they do
// without a filter, which is the control: the filter changes what it should and nothing else.
#include <grp.h>

#include <algorithm>

#include "launch/filter_reference.h"
#include "tests/kernel/seccomp_child.h"

namespace osb::kernel_test {
namespace {

constexpr std::uint32_t kNumbers = 1024;

// Calls whose zero-argument form cannot be compared by its answer. They are covered by simulation.
struct Skip {
  std::string_view call;
  std::string_view why;
};
constexpr Skip kSkips[] = {
    {"exit", "ends the thread that should report"},
    {"exit_group", "ends the process that should report"},
    {"pause", "waits for a signal that never comes"},
    {"select", "waits for ever without a timeout"},
    {"pselect6", "waits for ever without a timeout"},
    {"ppoll", "waits for ever without a timeout"},
    {"rt_sigreturn", "returns to a signal frame that does not exist"},
    {"vfork", "the child would overwrite the stack its parent returns on"},
    {"sync", "flushes every disk of the host, which may take minutes"},
    {"msgget", "makes queue 0, on which the following msgrcv would wait"},
    {"uretprobe", "the kernel does not show it to filters and ends callers outside its trampoline"},
    {"uprobe", "the kernel does not show it to filters and ends callers outside its trampoline"},
    {"seccomp", "zero arguments ask for strict mode, which only an unfiltered process may enter"},
};

bool skipped(std::uint32_t nr) { return std::ranges::find(kSkips, launch::syscall_name(nr), &Skip::call) != std::end(kSkips); }

// Whatever a call with zero arguments changes (a host name, a message queue, the mode of descriptor 0), it changes in
// namespaces and a file of its own. Nobody's uid comes first: a root that merely enters a user namespace still owns
// the host's files, and fchmod(0, 0) would lock /dev/null.
bool enter_nest() {
  constexpr unsigned kNobody = 65534;
  bool root = ::geteuid() == 0;
  if (root && (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 || ::setresuid(kNobody, kNobody, kNobody) != 0))
    return false;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of uid clears it
  int own = ::memfd_create("nest", MFD_CLOEXEC);
  bool stdio = own >= 0 && ::dup2(own, 0) == 0 && ::dup2(own, 1) == 1 && ::dup2(own, 2) == 2;
  return stdio && ::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET) == 0;
}

const char* need_nest() {
  static const bool works = in_child([] { return enter_nest() ? 0 : 1; }) == 0;
  return works ? nullptr
               : "an unprivileged process may not make namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)";
}

void sweep(MaybeProfile profile, Answer* answers) {
  for (std::uint32_t nr = 0; nr < kNumbers; ++nr) {
    if (skipped(nr)) continue;
    Ended ended = under(
        profile,
        [&] {
          answers[nr] = raw_call(nr, {});
          return 0;
        },
        std::chrono::seconds(10));
    answers[nr].signal = ended.timed_out ? SIGALRM : ended.signal;
  }
}

class SeccompSweep : public testing::Test {
 protected:
  // All four sweeps happen once, in one nest.
  static void SetUpTestSuite() {
    if (need_nest() != nullptr) return;
    auto all = make_shared_array<Answer>(4 * kNumbers);
    auto limit = std::chrono::seconds(100);
    nest_ = run_child(
        [&] {
          if (!enter_nest()) return 1;
          sweep(kUnfiltered, &all[0]);
          for (SyscallProfile profile : kProfiles) sweep(profile, &all[(1 + static_cast<std::size_t>(profile)) * kNumbers]);
          return 0;
        },
        limit);
    answers_.assign(&all[0], &all[0] + 4 * kNumbers);
  }

  void SetUp() override {
    NEED(need_nest());
    ASSERT_EQ(nest_, Ended{.code = 0});
  }

  static const Answer& free_answer(std::uint32_t nr) { return answers_[nr]; }
  static const Answer& answer(SyscallProfile profile, std::uint32_t nr) {
    return answers_[(1 + static_cast<std::size_t>(profile)) * kNumbers + nr];
  }

  static inline Ended nest_;
  static inline std::vector<Answer> answers_;
};

void expect_as_decided(launch::Action decided, const Answer& got, const Answer& control) {
  if (decided == launch::kKill)
    EXPECT_TRUE(got.killed()) << testing::PrintToString(got);
  else if (decided == launch::kAllow)
    EXPECT_TRUE(got.answered == control.answered && got.error == control.error)
        << testing::PrintToString(got) << ", without filter " << testing::PrintToString(control);
  else
    EXPECT_TRUE(got.refused_with(static_cast<int>(decided.word & SECCOMP_RET_DATA))) << testing::PrintToString(got);
}

TEST_F(SeccompSweep, EveryNumberIsAnsweredAsTheTableSays) {
  for (SyscallProfile profile : kProfiles) {
    const launch::Table& table = launch::table_of(profile);
    for (std::uint32_t nr = 0; nr < kNumbers; ++nr) {
      if (skipped(nr)) continue;
      SCOPED_TRACE(std::string(name_of(profile)) + " " + std::to_string(nr) + " " + std::string(launch::syscall_name(nr)));
      expect_as_decided(launch::reference::decide(table, nr, {}), answer(profile, nr), free_answer(nr));
    }
  }
}

TEST_F(SeccompSweep, WithoutTheFilterNobodyIsKilledAndMostRefusedCallsAnswerOtherwise) {
  const launch::Table& table = launch::table_of(SyscallProfile::standard);
  int refused = 0;
  int otherwise = 0;
  for (const launch::Row& row : table.rows) {
    if (skipped(row.nr)) continue;
    EXPECT_EQ(free_answer(row.nr).signal, 0) << launch::syscall_name(row.nr);
    if (row.action != launch::refuse(EPERM)) continue;
    ++refused;
    otherwise += free_answer(row.nr).error != EPERM;
  }
  EXPECT_GT(refused, 30);
  EXPECT_GT(otherwise, refused / 2) << "the refusals above would mean little if the kernel said EPERM by itself";
}

TEST(SeccompSweepSkips, NameOnlyCallsThatExist) {
  for (const Skip& skip : kSkips) {
    bool exists = false;
    for (std::uint32_t nr = 0; nr < kNumbers; ++nr)
      exists |= launch::syscall_name(nr, launch::Arch::x86_64) == skip.call || launch::syscall_name(nr, launch::Arch::aarch64) == skip.call;
    EXPECT_TRUE(exists) << skip.call << ": " << skip.why;
  }
}

}  // namespace
}  // namespace osb::kernel_test
