// What of the user's own must stay out of sandboxes of the runtime `process`: his home, his session's sockets, our own directories.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace osb::runtime {

// Directories of the host in which somebody could speak for the user; real paths, "" = there is none.
struct Private {
  std::vector<std::string> homes;    // keys and tokens: what holds one as a whole shows them
  std::vector<std::string> sockets;  // of the session and of this instance: no part of them may be shown
};
Private private_places(const std::string& run_dir, const std::string& state_dir);

// The rules, on real paths. Errc::invalid_argument says what would be shown.
Result<> check_workspace(std::string_view directory, const Private& places);
// The programs of the host are shown as a whole; a home among them would be too.
Result<> check_programs(const Private& places);

// The real path of a directory that may become /workspace; "" stays "".
Result<std::string> checked_workspace(const std::string& path, const Private& places);

}  // namespace osb::runtime
