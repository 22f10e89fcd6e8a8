#include "launch/device_filter.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "base/fd.h"

namespace osb::launch {
namespace {

constexpr std::int32_t kCharDevice = BPF_DEVCG_DEV_CHAR;

bpf_insn load_word(std::uint8_t to, std::int16_t offset) {
  return {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = static_cast<std::uint8_t>(to & 0xF), .src_reg = BPF_REG_1, .off = offset, .imm = 0};
}
bpf_insn jump_if_equal(std::uint8_t reg, std::int32_t value, std::int16_t skip) {
  return {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = static_cast<std::uint8_t>(reg & 0xF), .src_reg = 0, .off = skip, .imm = value};
}
bpf_insn jump_if_not(std::uint8_t reg, std::int32_t value, std::int16_t skip) {
  return {.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = static_cast<std::uint8_t>(reg & 0xF), .src_reg = 0, .off = skip, .imm = value};
}
bpf_insn set(std::uint8_t reg, std::int32_t value) {
  return {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = static_cast<std::uint8_t>(reg & 0xF), .src_reg = 0, .off = 0, .imm = value};
}
bpf_insn leave() { return {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}; }

std::vector<bpf_insn> device_program() {
  std::vector<bpf_insn> code;
  code.push_back(load_word(BPF_REG_2, 0));  // access in the high half, kind of device in the low half
  code.push_back({.code = BPF_ALU | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .src_reg = 0, .off = 0, .imm = 0xFFFF});
  code.push_back(load_word(BPF_REG_3, 4));
  code.push_back(load_word(BPF_REG_4, 8));
  code.push_back(set(BPF_REG_0, 0));
  code.push_back(jump_if_equal(BPF_REG_2, kCharDevice, 1));
  code.push_back(leave());
  code.push_back(set(BPF_REG_0, 1));
  code.push_back(jump_if_not(BPF_REG_3, kPtsMajor, 1));
  code.push_back(leave());
  for (auto device : kAllowedDevices) {
    code.push_back(jump_if_not(BPF_REG_3, static_cast<std::int32_t>(device.major), 2));
    code.push_back(jump_if_not(BPF_REG_4, static_cast<std::int32_t>(device.minor), 1));
    code.push_back(leave());
  }
  code.push_back(set(BPF_REG_0, 0));
  code.push_back(leave());
  return code;
}

}  // namespace

Result<> attach_device_filter(int cgroup_dir) {
  auto code = device_program();
  bpf_attr load{};
  static constexpr char kLicense[] = "Apache-2.0";
  load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  load.insns = reinterpret_cast<std::uint64_t>(code.data());
  load.insn_cnt = static_cast<std::uint32_t>(code.size());
  load.license = reinterpret_cast<std::uint64_t>(kLicense);
  Fd program(static_cast<int>(::syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load)));
  if (!program) return Error::from_errno("load device filter", errno);
  bpf_attr attach{};
  attach.target_fd = static_cast<std::uint32_t>(cgroup_dir);
  attach.attach_bpf_fd = static_cast<std::uint32_t>(program.get());
  attach.attach_type = BPF_CGROUP_DEVICE;
  attach.attach_flags = BPF_F_ALLOW_MULTI;
  if (::syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof attach) != 0) return Error::from_errno("attach device filter", errno);
  return Ok{};
}

}  // namespace osb::launch
