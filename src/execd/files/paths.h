// What a path of a client means, and how it is opened.
//
// A path is expanded ("~", "$NAME", relative to the sandbox's directory), made absolute and cleaned of ".", ".." and
// double slashes before anything is looked up. Symbolic links are followed as for every program of the sandbox, magic
// links of /proc never: they lead into execd itself. Content is read from regular files only, looked at before they are opened,
// so that no fifo, device or terminal can hold execd.
#pragma once
#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "execd/setup.h"
#include "http/http.h"

namespace osb::execd::files {

// Absolute and clean; an empty path, an unknown variable, a zero byte or more than PATH_MAX are errors.
Result<std::string> expand(const Setup& setup, std::string_view path);
std::string clean(std::string_view absolute);
std::string_view base_name(std::string_view path);
std::string parent_of(std::string_view path);
std::string join(std::string_view dir, std::string_view name);

// What errno means for a client: code, kind and a text with the (shortened) path.
Error failed(std::string_view doing, std::string_view path, int sys);
Error refused(std::string_view path, std::string_view why);  // 400 INVALID_FILE

// openat2(2) without magic links; `resolve` adds further RESOLVE_ flags. errno is set on failure.
Fd open_at(int dir, const std::string& path, int flags, std::uint64_t resolve = 0, mode_t mode = 0);
// The object itself (O_PATH) behind all links.
Result<Fd> open_object(const std::string& path);
// Opens what an O_PATH descriptor stands for.
Result<Fd> reopen(const Fd& object, int flags, std::string_view path);

struct Content {
  Fd fd;
  struct stat info{};
  bool kernel_made = false;  // of /proc or /sys: its size is unknown until it is read
};
// A regular file, open for reading. What /proc tells about one process is refused.
Result<Content> open_content(const std::string& path);

// Where a file is, or would be: the directory that holds it and its name there, after the links its name may be.
struct Place {
  std::shared_ptr<Fd> dir;  // O_PATH
  std::string name;
  std::string path;  // as the client named it
  bool exists = false;
  struct stat info{};
};
Result<Place> locate(const std::string& path);

// Like mkdir -p; new directories get `mode` and are added to `made`. Returns the last one (O_PATH).
Result<Fd> make_directories(const std::string& path, mode_t mode, std::vector<std::string>* made = nullptr);
// Takes back what make_directories made, as far as it is still empty.
void unmake_directories(const std::vector<std::string>& made);

// Values of every query parameter `name`; a query that cannot be read is an error.
Result<std::vector<std::string>> query_values(const http::Request& request, std::string_view name);
// {"code","message"} of an error made here or in one of our readers; `code` where the error has none of its own.
Task<void> reply_failure(http::Responder& responder, Error error, std::string_view code = "RUNTIME_ERROR");

}  // namespace osb::execd::files
