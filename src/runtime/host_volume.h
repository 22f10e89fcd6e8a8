// A directory or file of the host for a sandbox: found by its path once, judged by where it really is, and from then on only a
// descriptor. Everything here blocks on file systems: call it from a worker.
#pragma once
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace osb::runtime {

struct HostVolume {
  std::string path;                  // absolute
  std::string sub_path;              // relative, no ".."
  std::vector<std::string> allowed;  // directories of the operator; the volume has to lie in one, links resolved
};

// A detached mount of it. A directory that is missing is made, with the owner of the one above.
// Codes VOLUME::HOST_PATH_NOT_ALLOWED, HOST_PATH_NOT_FOUND, HOST_PATH_CREATE_FAILED, INVALID_HOST_PATH, INVALID_SUB_PATH.
Result<Fd> open_host_volume(const HostVolume& volume);

}  // namespace osb::runtime
