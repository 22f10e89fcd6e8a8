#include "runtime/process/workspace.h"

#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/text.h"

namespace osb::runtime {
namespace {

std::string real(const std::string& path) {
  char text[PATH_MAX];
  return ::realpath(path.c_str(), text) != nullptr ? text : "";
}

}  // namespace

bool holds_home(std::string_view directory, std::string_view home) {
  if (directory == "/") return true;
  return !home.empty() && (home == directory || (home.starts_with(directory) && home[directory.size()] == '/'));
}

Result<std::string> checked_workspace(const std::string& path) {
  if (path.empty()) return std::string();
  auto directory = real(path);
  if (directory.empty()) return Error::from_errno(cat("workspace ", path), errno, Errc::invalid_argument).at("process.workspace");
  struct stat info{};
  if (::stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return Error(Errc::invalid_argument, cat("workspace ", path, " is not a directory")).at("process.workspace");
  const char* set = std::getenv("HOME");
  const passwd* account = ::getpwuid(::geteuid());
  const char* recorded = account != nullptr ? account->pw_dir : nullptr;
  for (const char* home : {set, recorded})
    if (holds_home(directory, home != nullptr && home[0] == '/' && home[1] != 0 ? real(home) : std::string()))
      return Error(Errc::invalid_argument, cat("workspace ", path, " holds your whole home, with every key and token in it"))
          .at("process.workspace")
          .with_hint("choose a directory inside it");
  return directory;
}

}  // namespace osb::runtime
