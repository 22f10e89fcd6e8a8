#include "sys/large_segments.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/fd.h"

namespace osb::sys {
namespace {

constexpr std::uint64_t kLargePage = 2 << 20;
constexpr std::size_t kMostHeaders = 32;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, newer than some build hosts' headers

std::uint64_t round_up(std::uint64_t size) { return (size + kLargePage - 1) / kLargePage * kLargePage; }

bool read_at(int file, void* into, std::size_t size, std::uint64_t at) {
  return ::pread(file, into, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
}

bool stands_alone(const Elf64_Phdr& segment, const std::vector<Elf64_Phdr>& all) {
  auto meets = [&](const Elf64_Phdr& other) {
    return other.p_vaddr != segment.p_vaddr && other.p_vaddr < segment.p_vaddr + kLargePage &&
           segment.p_vaddr < other.p_vaddr + other.p_memsz;
  };
  bool fits = segment.p_vaddr % kLargePage == 0 && segment.p_filesz == segment.p_memsz && segment.p_memsz <= kLargePage;
  return fits && (segment.p_flags & PF_W) == 0 && std::ranges::none_of(all, meets);
}

// Those that can be a large page, in the order of the program's header.
std::vector<Elf64_Phdr> large_segments(int file) {
  Elf64_Ehdr head{};
  std::vector<Elf64_Phdr> all;
  bool readable = read_at(file, &head, sizeof head, 0) && std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                  head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_type == ET_EXEC && head.e_phentsize == sizeof(Elf64_Phdr) &&
                  head.e_phnum <= kMostHeaders;
  if (!readable) return {};
  all.resize(head.e_phnum);
  if (!read_at(file, all.data(), all.size() * sizeof all[0], head.e_phoff)) return {};
  std::erase_if(all, [](const Elf64_Phdr& segment) { return segment.p_type != PT_LOAD; });
  std::vector<Elf64_Phdr> found;
  for (const auto& segment : all)
    if (stands_alone(segment, all)) found.push_back(segment);
  return found;
}

Result<> copy_within(int file, std::uint64_t from, std::uint64_t to, std::uint64_t size) {
  char block[16 * 1024];
  while (size > 0) {
    auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, sizeof block));
    if (!read_at(file, block, n, from) || ::pwrite(file, block, n, static_cast<off_t>(to)) != static_cast<ssize_t>(n))
      return Error::from_errno("copy a segment", errno);
    from += n, to += n, size -= n;
  }
  return Ok{};
}

bool same_bytes(int file, std::uint64_t at, const Elf64_Phdr& segment) {
  void* copy = ::mmap(nullptr, segment.p_filesz, PROT_READ, MAP_PRIVATE, file, static_cast<off_t>(at));
  if (copy == MAP_FAILED) return false;
  bool same = std::memcmp(copy, reinterpret_cast<const void*>(segment.p_vaddr), segment.p_filesz) == 0;
  ::munmap(copy, segment.p_filesz);
  return same;
}

}  // namespace

Result<> append_large_segments(int file) {
  struct stat info{};
  if (::fstat(file, &info) != 0) return Error::from_errno("stat program", errno);
  auto segments = large_segments(file);
  std::uint64_t end = round_up(static_cast<std::uint64_t>(info.st_size));
  if (!segments.empty() && ::ftruncate(file, static_cast<off_t>(end + segments.size() * kLargePage)) != 0)
    return Error::from_errno("extend program", errno);
  for (const auto& segment : segments) {
    CHECK_OK(copy_within(file, segment.p_offset, end, segment.p_filesz));
    end += kLargePage;
  }
  return Ok{};
}

void map_large_segments() {
  Fd program(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!program || ::fstat(program.get(), &info) != 0) return;
  auto segments = large_segments(program.get());
  auto size = static_cast<std::uint64_t>(info.st_size);
  if (size % kLargePage != 0 || size <= segments.size() * kLargePage) return;
  std::uint64_t at = size - segments.size() * kLargePage;
  for (const auto& segment : segments) {
    if (!same_bytes(program.get(), at, segment)) return;
    // The program runs on while this happens: what is there before and after is the same.
    int protection = PROT_READ | ((segment.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
    auto* place = reinterpret_cast<void*>(segment.p_vaddr);
    void* mapped = ::mmap(place, kLargePage, protection, MAP_PRIVATE | MAP_FIXED, program.get(), static_cast<off_t>(at));
    if (mapped == place) ::madvise(place, kLargePage, kCollapse);
    at += kLargePage;
  }
}

}  // namespace osb::sys
