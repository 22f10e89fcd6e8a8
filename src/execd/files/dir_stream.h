// DirStream: the names in an open directory.
#pragma once
#include <dirent.h>

#include <memory>
#include <string_view>

#include "base/fd.h"

namespace osb::execd::files {

struct CloseDir {
  void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};
using DirStream = std::unique_ptr<DIR, CloseDir>;

inline DirStream stream_over(Fd dir) {
  DirStream stream(dir ? ::fdopendir(dir.get()) : nullptr);
  if (stream) (void)dir.release();  // the stream closes it
  return stream;
}

inline bool is_dots(std::string_view name) { return name == "." || name == ".."; }

}  // namespace osb::execd::files
