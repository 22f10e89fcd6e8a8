#include "launch/run_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "sys/fs_walk.h"
#include "sys/kernel_file.h"

namespace osb::launch {

Result<Fd> lock_run_dir(const std::string& run_dir, std::string_view who, std::chrono::milliseconds patience) {
  auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    // Made and opened again each time: a private instance takes directory and lock along when it ends.
    CHECK_OK(sys::make_dirs(run_dir, 0700));
    auto lock = sys::open_at(AT_FDCWD, (run_dir + "/lock").c_str(), O_RDWR | O_CREAT, 0600);
    if (!lock && lock.error().sys() != ENOENT) return lock;
    if (lock && ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0 && is_held(run_dir, *lock)) return lock;
    if (std::chrono::steady_clock::now() >= give_up)
      return Error(Errc::conflict, cat("another ", who, " runs this instance")).with_hint("stop it, or choose another instance");
    ::usleep(10'000);
  }
}

bool is_held(const std::string& run_dir, const Fd& lock) {
  struct stat ours{}, there{};
  return ::fstat(lock.get(), &ours) == 0 && ::stat((run_dir + "/lock").c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
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
