// The compiled filters against spec/seccomp itself, read here a second time and without the generator: a mistake in
// tools/gen_seccomp.py shows up as a difference. The lists below are the promises that no edit of the data may break.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

#include "base/text.h"
#include "launch/filter_reference.h"

namespace osb::launch {
namespace {

namespace json = boost::json;

std::string spec_folder() {
  std::string here = __FILE__;
  return here.substr(0, here.rfind("/src/launch/")) + "/spec/seccomp/";
}

json::object read_spec(const std::string& file) {
  std::ifstream in(spec_folder() + file);
  if (!in) throw std::runtime_error("cannot read " + spec_folder() + file);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return json::parse(text).as_object();
}

Action action_named(std::string_view name) {
  static const std::map<std::string_view, Action> kNames = {
      {"allow", kAllow},          {"KILL", kKill},
      {"EPERM", refuse(EPERM)},   {"ENOSYS", refuse(ENOSYS)},
      {"EACCES", refuse(EACCES)}, {"EAFNOSUPPORT", refuse(EAFNOSUPPORT)},
  };
  return kNames.at(name);
}

std::uint32_t number_of(const json::value& value) {
  if (value.is_int64()) return static_cast<std::uint32_t>(value.as_int64());
  return static_cast<std::uint32_t>(std::strtoul(value.as_string().c_str(), nullptr, 0));
}

bool holds(const json::object& condition, const Arguments& args) {
  auto low = static_cast<std::uint32_t>(args[static_cast<std::size_t>(condition.at("arg").as_int64())]);
  if (const json::value* mask = condition.if_contains("mask")) low &= number_of(*mask);
  for (const auto& [name, value] : condition.at("in").as_object())
    if (number_of(value) == low) return true;
  return false;
}

Action apply(const json::object& rule, const Arguments& args) {
  for (const json::value& one : rule.at("cases").as_array()) {
    bool all = true;
    for (const json::value& condition : one.at("when").as_array()) all = all && holds(condition.as_object(), args);
    if (all) return action_named(one.at("then").as_string());
  }
  return action_named(rule.at("otherwise").as_string());
}

// One profile of the data files, answering by the name of the call.
class SpecProfile {
 public:
  explicit SpecProfile(const std::string& name) : profile_(read_spec(name + ".json")) {
    for (const auto& [group, body] : read_spec("groups.json"))
      for (const json::value& call : body.at("calls").as_array()) group_of_[std::string(call.as_string())] = group;
  }

  Action decide(const std::string& call, const Arguments& args) const {
    const json::value* except = profile_.if_contains("except");
    if (except != nullptr && except->as_object().contains(call)) return action_named(except->at(call).at("action").as_string());
    if (const json::value* rule = profile_.at("rules").as_object().if_contains(call))
      return apply(rules_.at(rule->as_string()).as_object(), args);
    return action_of_group(group_of_.at(call));
  }

  bool has_rule(const std::string& call) const { return profile_.at("rules").as_object().contains(call); }

 private:
  Action action_of_group(const std::string& group) const {
    for (const auto& [action, groups] : profile_)
      if (groups.is_array())
        for (const json::value& one : groups.as_array())
          if (one.as_string() == group) return action_named(action);
    throw std::out_of_range(group);
  }

  json::object profile_;
  json::object rules_ = read_spec("rules.json");
  std::map<std::string, std::string> group_of_;
};

constexpr SyscallProfile kProfiles[] = {SyscallProfile::minimal, SyscallProfile::standard, SyscallProfile::permissive};
constexpr Arch kArches[] = {Arch::x86_64, Arch::aarch64};

const ArgumentRule* rule_of(const Table& table, std::uint32_t nr) {
  auto found = std::ranges::find(table.rules, nr, &ArgumentRule::nr);
  return found == table.rules.end() ? nullptr : &*found;
}

void expect_as_specified(SyscallProfile profile, Arch arch) {
  SpecProfile spec{std::string(name_of(profile))};
  Filter filter = *compile_filter(profile, arch);
  json::object numbers = read_spec(arch == Arch::x86_64 ? "syscalls-x86_64.json" : "syscalls-aarch64.json").at("calls").as_object();
  ASSERT_GT(numbers.size(), 300u);
  for (const auto& [key, value] : numbers) {
    std::string call = key;
    std::uint32_t nr = number_of(value);
    EXPECT_EQ(syscall_name(nr, arch), call);
    const ArgumentRule* rule = rule_of(table_of(profile, arch), nr);
    ASSERT_EQ(rule != nullptr, spec.has_rule(call)) << call;
    std::vector<Arguments> classes = rule != nullptr ? reference::argument_classes(*rule) : std::vector<Arguments>{Arguments{}};
    for (const Arguments& args : classes)
      for (std::uint64_t high : reference::kHighBits)
        ASSERT_EQ(simulate(filter, arch, nr, reference::with_high_bits(args, high)).word, spec.decide(call, args).word)
            << call << " " << args[0];
  }
}

TEST(FilterSpec, EveryProfileOnEveryArchitectureIsWhatTheDataFilesSay) {
  for (SyscallProfile profile : kProfiles)
    for (Arch arch : kArches) {
      SCOPED_TRACE(cat(name_of(profile), arch == Arch::x86_64 ? " x86_64" : " aarch64"));
      expect_as_specified(profile, arch);
    }
}

std::optional<std::uint32_t> number_named(std::string_view name, Arch arch) {
  for (std::uint32_t nr = 0; nr < 1024; ++nr)
    if (syscall_name(nr, arch) == name) return nr;
  return std::nullopt;
}

void expect_never(SyscallProfile profile, std::string_view call, const Arguments& args = {}) {
  for (Arch arch : kArches) {
    auto nr = number_named(call, arch);
    if (!nr) continue;
    Filter filter = *compile_filter(profile, arch);
    for (std::uint64_t high : reference::kHighBits)
      EXPECT_NE(simulate(filter, arch, *nr, reference::with_high_bits(args, high)).word, kAllow.word) << name_of(profile) << " " << call;
  }
}

TEST(FilterSpec, NoProfileLetsThroughWhatReachesTheKernelItself) {
  for (SyscallProfile profile : kProfiles)
    for (auto call : {"bpf",
                      "perf_event_open",
                      "userfaultfd",
                      "io_uring_setup",
                      "io_uring_enter",
                      "io_uring_register",
                      "add_key",
                      "keyctl",
                      "request_key",
                      "kexec_load",
                      "kexec_file_load",
                      "init_module",
                      "finit_module",
                      "delete_module",
                      "reboot",
                      "swapon",
                      "swapoff",
                      "iopl",
                      "ioperm",
                      "open_by_handle_at",
                      "syslog",
                      "acct",
                      "settimeofday",
                      "clock_settime",
                      "modify_ldt",
                      "memfd_secret",
                      "fanotify_init",
                      "quotactl",
                      "clone3",
                      "vhangup",
                      "move_pages",
                      "lookup_dcookie"})
      expect_never(profile, call);
}

TEST(FilterSpec, OnlyPermissiveLetsThroughNamespacesMountsAndDebugging) {
  for (auto call : {"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "unshare", "setns", "mount", "umount2",
                    "pivot_root", "chroot", "fsopen", "fsmount", "move_mount", "open_tree", "mount_setattr", "sethostname"}) {
    expect_never(SyscallProfile::minimal, call);
    expect_never(SyscallProfile::standard, call);
    auto nr = number_named(call, Arch::x86_64);
    EXPECT_EQ(simulate(*compile_filter(SyscallProfile::permissive, Arch::x86_64), Arch::x86_64, *nr, {}).word, kAllow.word) << call;
  }
  for (std::uint64_t flag : {0x20000ull, 0x2000000ull, 0x4000000ull, 0x8000000ull, 0x10000000ull, 0x20000000ull, 0x40000000ull}) {
    expect_never(SyscallProfile::minimal, "clone", {flag | 17});
    expect_never(SyscallProfile::standard, "clone", {flag | 17});
  }
}

TEST(FilterSpec, NoProfileMakesStrangeSocketsDevicesOrTypesIntoTerminals) {
  constexpr std::uint64_t kRaw = 3, kInetPacket = 10, kNetfilter = 12;
  for (SyscallProfile profile : kProfiles) {
    for (std::uint64_t family : {17ull, 29ull, 31ull, 38ull, 40ull, 44ull}) expect_never(profile, "socket", {family, 1, 0});
    for (std::uint64_t family : {2ull, 10ull}) expect_never(profile, "socket", {family, kRaw, 1});
    expect_never(profile, "socket", {2, kInetPacket, 0});
    expect_never(profile, "socket", {16, kRaw, kNetfilter});
    expect_never(profile, "socketpair", {30, 1, 0});
    for (std::uint64_t request : {0x5412ull, 0x541cull, 0x541dull, 0x5423ull}) expect_never(profile, "ioctl", {0, request});
    for (std::uint64_t type : {0x2000ull, 0x6000ull}) {
      expect_never(profile, "mknod", {0, type | 0600});
      expect_never(profile, "mknodat", {0, 0, type | 0600});
    }
    for (std::uint64_t option : {35ull, 57ull, 59ull, 62ull}) expect_never(profile, "prctl", {option});
    expect_never(profile, "personality", {0x400000});
  }
}

TEST(FilterSpec, MinimalMakesNoSocketButAcceptsForExecd) {
  for (Arch arch : kArches) {
    Filter filter = *compile_filter(SyscallProfile::minimal, arch);
    auto answer = [&](std::string_view call, const Arguments& args) { return simulate(filter, arch, *number_named(call, arch), args); };
    EXPECT_EQ(answer("socket", {1, 1}).word, refuse(EACCES).word);
    EXPECT_EQ(answer("accept4", {}).word, kAllow.word);
    EXPECT_EQ(answer("socketpair", {1, 1}).word, kAllow.word);
    for (auto call : {"bind", "listen", "connect", "accept"}) EXPECT_EQ(answer(call, {}).word, kUnknownCall.word) << call;
  }
}

}  // namespace
}  // namespace osb::launch
