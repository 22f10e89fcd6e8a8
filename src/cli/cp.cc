#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/fd.h"
#include "base/id.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/progress.h"
#include "cli/remote_files.h"
#include "cli/sanitise.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr std::array kOptions{kHostOption, kKeyOption, kKeyFileOption};
constexpr std::size_t kBlock = 256 * 1024;
constexpr unsigned kDepth = 1000;

Error local_error(std::string_view doing, std::string_view path, int sys) {
  return Error::from_errno(cat(doing, " ", path), sys, sys == ENOENT ? Errc::not_found : Errc::invalid_argument);
}

std::string_view without_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// "." as the last name means what is in the directory, not the directory: "cp dir/. ID:/x".
std::string_view last_name(std::string_view path) {
  path = without_slashes(path);
  auto name = path.substr(path.rfind('/') + 1);
  return name == "." || name == ".." || name == "/" ? std::string_view() : name;
}

std::string join(std::string_view dir, std::string_view name) {
  return name.empty() ? std::string(dir) : cat(dir, dir.ends_with('/') ? "" : "/", name);
}

class Copy {
 public:
  explicit Copy(RemoteFiles files) : files_(std::move(files)), block_(std::make_unique_for_overwrite<char[]>(kBlock)) {}

  // ---- into the sandbox

  Result<> upload(const std::string& from, std::string to) {
    if (from == "-") return upload_from(STDIN_FILENO, "standard input", 0, to, std::nullopt);
    struct stat info{};
    if (::stat(from.c_str(), &info) != 0) return local_error("read", from, errno);
    auto there = files_.stat(to);
    if (!there && there.error().kind() != Errc::not_found) return std::move(there).error();
    bool into = to.ends_with('/') || (there && there->type == "directory");
    if (into) to = join(to, last_name(from));
    if (S_ISDIR(info.st_mode)) return upload_tree(from, to);
    return upload_file(from, to);
  }

  // ---- out of the sandbox

  Result<> download(const std::string& from, std::string to) {
    if (to == "-") return files_.download(from, [](std::string_view bytes) { return write_all(STDOUT_FILENO, bytes); });
    TRY(auto entry, files_.stat(from));
    struct stat info{};
    bool into = to.ends_with('/') || (::stat(to.c_str(), &info) == 0 && S_ISDIR(info.st_mode));
    if (into) to = join(to, last_name(from));
    if (entry.type == "directory") return download_tree(entry, to);
    return download_file(from, to, entry);
  }

 private:
  Result<> upload_file(const std::string& from, const std::string& to) {
    Fd file(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat info{};
    if (!file || ::fstat(file.get(), &info) != 0) return local_error("read", from, errno);
    if (!S_ISREG(info.st_mode)) return Error(Errc::invalid_argument, cat(from, " is not a regular file"));
    return upload_from(file.get(), from, static_cast<std::uint64_t>(info.st_size), to, info.st_mode & 0777);
  }

  Result<> upload_from(int fd, std::string_view name, std::uint64_t size, const std::string& to, std::optional<unsigned> mode) {
    progress_.begin(name, size);
    return files_.upload(to, mode, [&]() -> Result<std::string_view> {
      ssize_t n = -1;
      do n = ::read(fd, block_.get(), kBlock);
      while (n < 0 && errno == EINTR);
      if (n < 0) return local_error("read", name, errno);
      progress_.add(static_cast<std::uint64_t>(n));
      return std::string_view(block_.get(), static_cast<std::size_t>(n));
    });
  }

  Result<> upload_tree(const std::string& from, const std::string& to) {
    struct stat info{};
    std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(from.c_str()), ::closedir);
    if (!dir || ::fstat(::dirfd(dir.get()), &info) != 0) return local_error("read", from, errno);
    CHECK_OK(files_.make_directory(to, 0700 | (info.st_mode & 0777)));
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(dir.get()))
      if (std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
    std::ranges::sort(names);
    for (const auto& name : names) {
      auto path = join(from, name);
      if (::lstat(path.c_str(), &info) != 0) return local_error("read", path, errno);
      if (S_ISDIR(info.st_mode))
        CHECK_OK(upload_tree(path, join(to, name)));
      else if (S_ISREG(info.st_mode))
        CHECK_OK(upload_file(path, join(to, name)));
      else
        skip(path);
    }
    return Ok{};
  }

  void skip(std::string_view path) {
    progress_.clear();
    warn(cat("skipped ", sanitise(path), ": neither a file nor a directory"));
  }

  // Under a name of its own until all is there: what was at `to` stays until then, and nothing half is left.
  Result<> download_file(const std::string& from, const std::string& to, const RemoteEntry& entry) {
    auto slash = to.rfind('/');
    auto beside = cat(slash == to.npos ? "" : to.substr(0, slash + 1), ".osb-", random_hex(6));
    Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return local_error("write", to, errno);
    int sys = 0;
    progress_.begin(from, entry.size);
    auto done = files_.download(from, [&](std::string_view bytes) {
      progress_.add(bytes.size());
      if (write_all(file.get(), bytes)) return true;
      sys = errno;
      return false;
    });
    if (done && sys == 0 && (::fchmod(file.get(), entry.mode) != 0 || ::rename(beside.c_str(), to.c_str()) != 0)) sys = errno;
    if (!done || sys != 0) ::unlink(beside.c_str());
    if (!done) return done;
    if (sys != 0) return local_error("write", to, sys);
    return Ok{};
  }

  // The names are a sandbox's word: only plain ones below the directory asked for are taken, and no link is ever made, so
  // nothing can lead out of `to`.
  Result<> download_tree(const RemoteEntry& root, const std::string& to) {
    TRY(auto entries, files_.list(root.path, kDepth));
    CHECK_OK(make_local(to, root.mode));
    auto prefix = cat(root.path, root.path.ends_with('/') ? "" : "/");
    for (const auto& entry : entries) {
      if (!is_below(entry.path, prefix))
        return Error(Errc::malformed, cat("the sandbox names ", sanitise(entry.path), " below ", sanitise(root.path)));
      auto path = join(to, entry.path.substr(prefix.size()));
      if (entry.type == "directory")
        CHECK_OK(make_local(path, entry.mode));
      else if (entry.type == "file")
        CHECK_OK(download_file(entry.path, path, entry));
      else
        skip(entry.path);
    }
    return Ok{};
  }

  static bool is_below(std::string_view path, std::string_view prefix) {
    if (!path.starts_with(prefix) || path.size() == prefix.size()) return false;
    for (auto name : split(path.substr(prefix.size()), '/'))
      if (name.empty() || name == "." || name == "..") return false;
    return true;
  }

  static Result<> make_local(const std::string& path, unsigned mode) {
    struct stat info{};
    if (::mkdir(path.c_str(), 0700 | mode) == 0) return Ok{};
    if (errno == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return Ok{};
    return local_error("make directory", path, errno);
  }

  RemoteFiles files_;
  std::unique_ptr<char[]> block_;
  Progress progress_;
};

Result<int> copy(const Args& args) {
  auto from = parse_remote(args.operands[0]);
  auto to = parse_remote(args.operands[1]);
  if (!from && !to) return usage_error("neither side names a sandbox", "write that side as ID:/path");
  if (from && to)
    return usage_error("both sides are in a sandbox", "copy through a pipe: opensandbox cp ID1:/a - | opensandbox cp - ID2:/b");
  TRY(auto api, find_daemon(args));
  TRY(auto files, RemoteFiles::open(api, from ? from->sandbox : to->sandbox));
  Copy copier(std::move(files));
  CHECK_OK(from ? copier.download(from->path, args.operands[1]) : copier.upload(args.operands[0], to->path));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kCopy{
    .name = "cp",
    .also = {},
    .summary = "copy files and directories into a sandbox or out of it",
    .usage = "[options] SRC ID:DST | ID:SRC DST",
    .details =
        "Directories are copied with all they hold; \"dir/.\" means what is in it. When the destination is a directory or ends with\n"
        "a slash, the copy goes there under its own name. \"-\" is standard input or output. Permissions are kept; links are\n"
        "skipped with a warning. A file is replaced when all of it has come, not before.",
    .examples =
        "opensandbox cp ./src 7k2:/workspace/\n"
        "opensandbox cp 7k2:/workspace/result.csv .\n"
        "tar c . | opensandbox cp - 7k2:/tmp/all.tar",
    .options = kOptions,
    .operand = Operand::file,
    .min_operands = 2,
    .max_operands = 2,
    .main = copy,
};

}  // namespace osb::cli
