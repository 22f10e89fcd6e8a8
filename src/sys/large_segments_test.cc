#include "sys/large_segments.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/fd.h"

namespace osb::sys {
namespace {

constexpr std::size_t kLarge = 2 << 20;
constexpr std::string_view kText = "what the program executes";

// A program with one segment that is read, at `address`, and one that is written behind it.
Fd program_at(std::uint64_t address) {
  struct {
    Elf64_Ehdr head{};
    Elf64_Phdr segments[2]{};
    char text[64]{};
  } image;
  std::memcpy(image.head.e_ident, ELFMAG, SELFMAG);
  image.head.e_ident[EI_CLASS] = ELFCLASS64;
  image.head.e_type = ET_EXEC;
  image.head.e_phoff = sizeof image.head;
  image.head.e_phnum = 2;
  image.head.e_phentsize = sizeof image.segments[0];
  image.segments[0] = {PT_LOAD, PF_R | PF_X, 0, address, address, sizeof image, sizeof image, 4096};
  image.segments[1] = {PT_LOAD, PF_R | PF_W, 0, 0x600000, 0x600000, 16, 16, 4096};
  kText.copy(image.text, sizeof image.text);
  Fd file(::memfd_create("program", MFD_CLOEXEC));
  EXPECT_EQ(::pwrite(file.get(), &image, sizeof image, 0), static_cast<ssize_t>(sizeof image));
  return file;
}

std::size_t size_of(const Fd& file) {
  struct stat info{};
  EXPECT_EQ(::fstat(file.get(), &info), 0);
  return static_cast<std::size_t>(info.st_size);
}

std::string bytes_at(const Fd& file, std::size_t at, std::size_t size) {
  std::string bytes(size, '\0');
  EXPECT_EQ(::pread(file.get(), bytes.data(), size, static_cast<off_t>(at)), static_cast<ssize_t>(size));
  return bytes;
}

TEST(LargeSegments, ASegmentThatIsAloneOnALargePageIsAddedBehindTheProgram) {
  Fd file = program_at(0x400000);
  std::size_t before = size_of(file);
  ASSERT_TRUE(append_large_segments(file.get()));
  ASSERT_EQ(size_of(file), 2 * kLarge);
  auto copy = bytes_at(file, kLarge, before);
  EXPECT_EQ(copy, bytes_at(file, 0, before));
  EXPECT_NE(copy.find(kText), std::string::npos);
}

TEST(LargeSegments, AProgramLaidOutOtherwiseStaysAsItIs) {
  for (std::uint64_t address : {0x401000ull, 0x5ff000ull}) {
    Fd file = program_at(address);
    std::size_t before = size_of(file);
    ASSERT_TRUE(append_large_segments(file.get()));
    EXPECT_EQ(size_of(file), before);
  }
}

TEST(LargeSegments, AFileThatIsNoProgramStaysAsItIs) {
  Fd file(::memfd_create("text", MFD_CLOEXEC));
  ASSERT_EQ(::pwrite(file.get(), kText.data(), kText.size(), 0), static_cast<ssize_t>(kText.size()));
  ASSERT_TRUE(append_large_segments(file.get()));
  EXPECT_EQ(size_of(file), kText.size());
}

}  // namespace
}  // namespace osb::sys
