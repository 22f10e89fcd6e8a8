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

constexpr const char* kShown[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

std::string real(const char* path) {
  char text[PATH_MAX];
  return path != nullptr && path[0] == '/' && ::realpath(path, text) != nullptr ? text : "";
}

bool holds(std::string_view outer, std::string_view inner) {
  if (outer.empty() || inner.empty()) return false;
  return outer == "/" || inner == outer || (inner.starts_with(outer) && inner[outer.size()] == '/');
}

Error refused(std::string_view directory, std::string_view why) {
  return Error(Errc::invalid_argument, cat("workspace ", directory, " ", why))
      .at("process.workspace")
      .with_hint("choose a directory that holds the project and nothing else");
}

}  // namespace

Private private_places(const std::string& run_dir, const std::string& state_dir) {
  const passwd* account = ::getpwuid(::geteuid());
  Private places;
  places.homes = {real(std::getenv("HOME")), real(account != nullptr ? account->pw_dir : nullptr)};
  std::erase(places.homes, "/");  // of an account that has none
  places.sockets = {real(std::getenv("XDG_RUNTIME_DIR")), real(cat("/run/user/", ::geteuid()).c_str()), real(run_dir.c_str()),
                    real(state_dir.c_str())};
  return places;
}

Result<> check_workspace(std::string_view directory, const Private& places) {
  if (directory == "/") return refused(directory, "is the whole host");
  for (const auto& home : places.homes)
    if (holds(directory, home)) return refused(directory, "holds your whole home, with every key and token in it");
  for (const auto& place : places.sockets)
    if (holds(directory, place) || holds(place, directory))
      return refused(directory, cat("shares files with ", place, ", where programs of yours listen"));
  return Ok{};
}

Result<> check_programs(const Private& places) {
  for (const char* shown : kShown)
    for (const auto& home : places.homes)
      if (holds(real(shown), home))
        return Error(Errc::unsupported, cat("your home ", home, " lies below ", shown, ", which every sandbox sees"))
            .with_hint("use another account, or the runtime native");
  return Ok{};
}

Result<std::string> checked_workspace(const std::string& path, const Private& places) {
  if (path.empty()) return std::string();
  auto directory = real(path.c_str());
  if (directory.empty()) return Error::from_errno(cat("workspace ", path), errno, Errc::invalid_argument).at("process.workspace");
  struct stat info{};
  if (::stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return refused(path, "is not a directory");
  CHECK_OK(check_workspace(directory, places));
  return directory;
}

}  // namespace osb::runtime
