#include "launch/sealed_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.h"
#include "sys/kernel_file.h"
#include "sys/large_segments.h"

namespace osb::launch {

Result<Fd> seal_program(const std::string& path, Pages pages) {
  TRY(auto file, sys::open_at(AT_FDCWD, path.c_str(), O_RDONLY));
  return seal_program(file.get(), pages);
}

Result<Fd> seal_program(int file, Pages pages) {
  struct stat info{};
  if (::fstat(file, &info) != 0) return Error::from_errno("stat program", errno);
  Fd sealed(::memfd_create("execd", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!sealed) return Error::from_errno("memfd_create", errno);
  for (off_t at = 0; at < info.st_size;) {
    auto n = ::sendfile(sealed.get(), file, &at, static_cast<std::size_t>(info.st_size - at));
    if (n <= 0) return Error::from_errno("copy program", errno);
  }
  if (pages == Pages::large) CHECK_OK(sys::append_large_segments(sealed.get()));
  if (::fcntl(sealed.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return Error::from_errno("seal program", errno);
  // Executing needs a descriptor without write access: exec of a file open for writing is ETXTBSY.
  return sys::open_at(AT_FDCWD, cat("/proc/self/fd/", sealed.get()).c_str(), O_RDONLY);
}

}  // namespace osb::launch
