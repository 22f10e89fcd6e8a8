// NewFile: the next content of a file, written under a hidden name beside it and put in its place in one step.
//
// Whoever reads the file sees the old content or the new. Until commit() the old file is untouched, and without it
// nothing is left. Replacing gives the name a new inode: other hard links and open descriptors keep the old content. Owner, group
// and mode of a file that was there stay unless others are asked for.
#pragma once
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "execd/files/paths.h"
#include "execd/files/permission.h"

namespace osb::execd::files {

class NewFile {
 public:
  // Refuses a place where something other than a regular file is.
  static Result<NewFile> beside(Place place);
  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  Result<> write(std::string_view bytes);
  // The content is whole: sets owner and mode (`fresh_mode` where neither the client nor an old file says one).
  Result<> seal(Permission permission, mode_t fresh_mode);
  Result<> commit();
  const Place& place() const { return place_; }

 private:
  NewFile(Place place, std::string hidden, Fd fd) : place_(std::move(place)), hidden_(std::move(hidden)), fd_(std::move(fd)) {}
  Place place_;
  std::string hidden_;  // empty: moved from or committed
  Fd fd_;
};

}  // namespace osb::execd::files
