// A directory under `<root>/tmp` for things half-made: gone with its owner, and swept at the next open after a crash.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::image {

class WorkDir {
 public:
  // `tmp` outlives it. Its owner holds a lock on it, which is how a sweep tells the living from the dead.
  // Preconditions: the caller holds the store's lock, so that no sweep sees it unlocked.
  static Result<WorkDir> make(int tmp);
  WorkDir(WorkDir&&) noexcept = default;
  WorkDir& operator=(WorkDir&&) = delete;
  ~WorkDir();

  int dir() const { return dir_.get(); }
  const std::string& name() const { return name_; }
  // A new empty directory in it, open for reading.
  Result<Fd> make_dir(const std::string& name) const;

 private:
  WorkDir(int tmp, std::string name, Fd dir) : tmp_(tmp), name_(std::move(name)), dir_(std::move(dir)) {}
  int tmp_;
  std::string name_;
  Fd dir_;
};

// Removes what nobody holds. Preconditions: the caller holds the store's lock.
Result<> sweep_work_dirs(int tmp);

}  // namespace osb::image
