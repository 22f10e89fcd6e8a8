#include "daemon/instance.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/text.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"
#include "sys/kernel_file.h"

namespace osb::daemon {
namespace {

namespace fs = std::filesystem;  // for questions only; removal goes by descriptor

constexpr std::string_view kPidFile = "/serve.pid";
constexpr std::string_view kStateLock = "/lock";
// Says that a directory was made for a private instance and may be removed with it.
constexpr std::string_view kPrivateMark = "/.private-instance";

Result<Fd> lock(const std::string& path, const std::string& directory) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Error::from_errno(cat("open ", path), errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) return Error::from_errno(cat("lock ", path), errno);
  char pid[16] = {};
  auto n = ::pread(file.get(), pid, sizeof pid - 1, 0);
  auto holder = trim(std::string_view(pid, n > 0 ? static_cast<std::size_t>(n) : 0));
  if (auto end = holder.find('\n'); end != std::string_view::npos) holder = holder.substr(0, end);
  return Error(Errc::conflict, cat("another daemon", holder.empty() ? "" : cat(" (pid ", holder, ")"), " uses ", directory))
      .with_hint("stop it first, or choose another server.instance and storage.state_dir");
}

Result<> write_pid(const Fd& file) {
  auto text = cat(::getpid(), "\n");
  bool ok = ::ftruncate(file.get(), 0) == 0 && ::pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!ok) return Error::from_errno("write pid file", errno);
  return Ok{};
}

// Refuses a directory with foreign content: what is private will be removed whole.
Result<> claim(const std::string& directory) {
  std::error_code failed;
  if (fs::exists(directory + std::string(kPrivateMark), failed)) return Ok{};
  bool vacant = !fs::exists(directory, failed) || fs::is_empty(directory, failed);
  if (!vacant || failed) return Error(Errc::conflict, cat(directory, " is not empty; a private instance needs directories of its own"));
  CHECK_OK(sys::make_dirs(directory, 0700));
  Fd mark(::open((directory + std::string(kPrivateMark)).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!mark) return Error::from_errno(cat("mark ", directory), errno);
  return Ok{};
}

// Nothing is followed on the way down, so a stray link or mount cannot lead the removal elsewhere.
Result<> remove_marked(const std::string& directory) {
  std::error_code failed;
  if (!fs::exists(directory, failed)) return Ok{};  // a private launcher takes the run directory along when it ends last
  if (!fs::exists(directory + std::string(kPrivateMark), failed)) return Error(Errc::internal, cat(directory, " is not marked as private"));
  fs::path path = fs::path(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  TRY(auto parent, sys::fs::open_directory(path.parent_path().string()));
  return sys::fs::remove_tree(parent.get(), path.filename().string());
}

}  // namespace

Result<Instance> Instance::open(const Config& config, bool is_private) {
  Instance instance;
  instance.run_dir_ = config.instance_dir();
  instance.state_dir_ = config.storage.state_dir;
  instance.private_ = is_private;
  for (const auto* directory : {&instance.run_dir_, &instance.state_dir_}) {
    if (is_private) CHECK_OK(claim(*directory));
    CHECK_OK(sys::make_dirs(*directory, 0700));
    // Root's places are root's. An ordinary user's may lie in /tmp, where somebody else was faster.
    if (::geteuid() != 0) CHECK_OK(sys::fs::check_path_is_ours(*directory));
  }
  TRY(instance.run_lock_, lock(cat(instance.run_dir_, kPidFile), instance.run_dir_));
  TRY(instance.state_lock_, lock(cat(instance.state_dir_, kStateLock), instance.state_dir_));
  CHECK_OK(write_pid(instance.run_lock_));
  CHECK_OK(write_pid(instance.state_lock_));
  return instance;
}

std::string Instance::data_dir() const {
  fs::path parent = fs::path(state_dir_).parent_path();
  if (!private_ || parent.filename() != "private") return state_dir_;
  return parent.parent_path().string();
}

Result<> Instance::remove() {
  if (!private_) return Error(Errc::internal, "only a private instance is removed");
  auto run = remove_marked(run_dir_);
  auto state = remove_marked(state_dir_);  // also when the first could not be removed
  return run ? state : run;
}

}  // namespace osb::daemon
