// KernelFolder: where kernels of this sandbox put their sockets, readable by the sandbox's user alone.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "execd/setup.h"

namespace osb::execd {

class KernelFolder {
 public:
  // Made at first use, in TMPDIR or /tmp or wherever the image allows it.
  Result<> make(const Setup& setup);
  // A path for one kernel: sockets are "-1" to "-5" behind it, the connection file ".json".
  std::string new_place();
  // Readable by the owner alone; `text` holds the key.
  Result<> write(const Setup& setup, const std::string& place, std::string_view text);
  void clean(const std::string& place);

 private:
  std::string path_;
  Fd folder_;
  unsigned next_ = 0;
};

}  // namespace osb::execd
