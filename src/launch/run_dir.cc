#include "launch/run_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "sys/fs_walk.h"
#include "sys/kernel_file.h"

namespace osb::launch {

Result<Fd> lock_run_dir(const std::string& run_dir, std::string_view who) {
  TRY(auto lock, sys::open_at(AT_FDCWD, (run_dir + "/lock").c_str(), O_RDWR | O_CREAT, 0600));
  for (int tries = 0; ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == 200)
      return Error(Errc::conflict, cat("another ", who, " runs this instance")).with_hint("stop it, or choose another instance");
    ::usleep(10'000);
  }
  return lock;
}

Result<> mark_private(const std::string& run_dir) {
  auto marked = sys::write_new_file(AT_FDCWD, (run_dir + "/private").c_str(), "", 0600);
  if (!marked && marked.error().sys() != EEXIST) return std::move(marked).error();
  return Ok{};
}

bool is_private(const std::string& run_dir) { return ::access((run_dir + "/private").c_str(), F_OK) == 0; }

void remove_run_dir(const std::string& run_dir) {
  for (const auto& name : sys::fs::names_in(run_dir)) {
    std::string path = cat(run_dir, "/", name);
    if (::unlink(path.c_str()) == 0) continue;
    ::umount2(path.c_str(), MNT_DETACH);  // refused to the keeper, which mounts nothing there
    for (const auto& inner : sys::fs::names_in(path)) ::unlink(cat(path, "/", inner).c_str());
    ::rmdir(path.c_str());
  }
  ::rmdir(run_dir.c_str());
}

}  // namespace osb::launch
