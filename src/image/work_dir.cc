#include "image/work_dir.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/id.h"
#include "base/log.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"

namespace osb::image {

namespace fs = sys::fs;

namespace {
constexpr int kOpenDir = O_RDONLY | O_DIRECTORY;
constexpr std::size_t kMaxLeftovers = 100'000;
}  // namespace

Result<WorkDir> WorkDir::make(int tmp) {
  std::string name = random_hex(16);
  CHECK_OK(fs::make_dir_at(tmp, name, 0700));
  TRY(auto dir, fs::open_beneath(tmp, name, kOpenDir));
  WorkDir made(tmp, name, std::move(dir));
  TRY(bool locked, fs::lock_exclusive(made.dir(), fs::LockWait::no));
  if (!locked) return Error(Errc::internal, "a new work directory is locked by another");
  return made;
}

WorkDir::~WorkDir() {
  if (!dir_) return;
  auto removed = fs::remove_tree(tmp_, name_);
  // A helper that was killed a moment ago may still make its last file.
  for (int tries = 0; !removed && tries < 50; ++tries) {
    ::usleep(10'000);
    removed = fs::remove_tree(tmp_, name_);
  }
  if (!removed) log::warn("image work directory stays", {{"error", removed.error().what()}});
}

Result<Fd> WorkDir::make_dir(const std::string& name) const {
  CHECK_OK(fs::make_dir_at(dir(), name, 0755));
  return fs::open_beneath(dir(), name, kOpenDir);
}

Result<> sweep_work_dirs(int tmp) {
  TRY(auto names, fs::list_dir(tmp, kMaxLeftovers));
  for (const std::string& name : names) {
    auto dir = fs::open_beneath(tmp, name, kOpenDir);
    if (dir) {
      TRY(bool free, fs::lock_exclusive(dir->get(), fs::LockWait::no));
      if (!free) continue;
    }
    CHECK_OK(fs::remove_tree(tmp, name));
  }
  return Ok{};
}

}  // namespace osb::image
