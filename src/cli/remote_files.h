// Files of one sandbox, through the daemon. What comes back is a sandbox's word: paths and numbers are checked before use.
#pragma once
#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api.h"

namespace osb::cli {

// "ID:/path" of the command line; nullopt for a local path ("./a:b" and "/a:b" are local).
struct RemotePath {
  std::string sandbox;
  std::string path;
};
std::optional<RemotePath> parse_remote(std::string_view text);

struct RemoteEntry {
  std::string path;
  std::string type;  // "file", "directory", "symlink", "other"
  std::uint64_t size = 0;
  unsigned mode = 0644;  // permission bits
  boost::json::object all;
};

class RemoteFiles {
 public:
  // Finds the sandbox by id, prefix or name.
  static Result<RemoteFiles> open(Api& api, std::string_view sandbox);

  Result<RemoteEntry> stat(const std::string& path);
  Result<std::vector<RemoteEntry>> list(const std::string& path, unsigned depth);
  Result<> make_directory(const std::string& path, std::optional<unsigned> mode);
  Result<> remove_files(const std::vector<std::string>& paths);
  Result<> remove_trees(const std::vector<std::string>& paths);
  Result<> move(const std::string& from, const std::string& to);

  using Sink = std::function<bool(std::string_view)>;        // false: no more
  using Source = std::function<Result<std::string_view>()>;  // empty: the end
  Result<> download(const std::string& path, const Sink& sink);
  Result<> upload(const std::string& path, std::optional<unsigned> mode, const Source& source);

 private:
  RemoteFiles(Api& api, Door door) : api_(&api), door_(std::move(door)) {}
  Result<Reply> call(std::string method, std::string_view route, std::string body = {});
  Result<Connection*> stream_connection();

  Api* api_;
  Door door_;
  std::optional<Connection> streams_;  // kept from one transfer to the next
};

// 0644 as the number the protocol wants, 644, and back.
unsigned octal_digits(unsigned mode);
unsigned from_octal_digits(unsigned digits);

}  // namespace osb::cli
