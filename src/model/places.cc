#include "model/places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"

namespace osb {
namespace {

// An absolute path in the environment; anything else is as good as nothing.
std::string directory_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

bool is_own_directory(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

std::string last_resort() { return cat("/tmp/opensandbox-", ::geteuid()); }

}  // namespace

std::string usual_run_dir() {
  if (::geteuid() == 0) return "/run/opensandbox";
  if (auto given = directory_in("XDG_RUNTIME_DIR"); is_own_directory(given)) return given + "/opensandbox";
  if (auto usual = cat("/run/user/", ::geteuid()); is_own_directory(usual)) return usual + "/opensandbox";
  return last_resort();
}

std::string usual_state_dir() {
  if (::geteuid() == 0) return "/var/lib/opensandbox";
  if (auto given = directory_in("XDG_STATE_HOME"); !given.empty()) return given + "/opensandbox";
  if (auto home = directory_in("HOME"); is_own_directory(home)) return home + "/.local/state/opensandbox";
  return last_resort() + "/state";
}

}  // namespace osb
