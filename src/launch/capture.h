// Takes the file-system state of a sandbox: a helper process beside the launcher's loop that reads the sandbox's writable layer
// and writes a layer of the image store.
//
// The writable layer has no path: it is mounted only in the sandbox's mount namespace, beneath its root. The helper joins that
// namespace, makes a copy of it, takes the root off in the copy and finds what lies below. Nothing has to be remembered for
// that, so a launcher that adopted the sandbox can do it as well as the one that made it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "launch/tree_copy.h"

namespace osb::launch {

struct CaptureJob {
  int sandbox = -1;                           // pidfd of its pid 1
  std::uint32_t first_id = 0;                 // of its range
  std::string work_dir;                       // of the launcher: where `store` is mounted, and `scratch` beside a store on disk
  std::vector<std::string> host_directories;  // names, in the order of the upper directories
  int into = -1;                              // `layer` is made in here
  CopyLimits limits;
};

// What the helper writes on its report pipe before it ends.
struct CaptureReport {
  std::int32_t sys = 0;  // 0 = done
  std::uint32_t unused = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t passed_over = 0;
  char detail[160] = {};
};

struct CaptureHelper {
  Fd pidfd;   // readable when the helper has ended and wants to be reaped
  Fd report;  // one CaptureReport, or nothing when it was killed
};

// The sandbox stands still until the helper has ended. The helper dies with the launcher.
Result<CaptureHelper> start_capture(const CaptureJob& job);

}  // namespace osb::launch
