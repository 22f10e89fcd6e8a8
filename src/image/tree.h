// A small tree of files in memory, from which a layer is written. Equal trees have equal digests.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::image {

class Tree {
 public:
  enum class Kind : char { directory = 'd', file = 'f', symlink = 'l' };
  struct Node {
    Kind kind = Kind::file;
    std::uint32_t mode = 0644;
    std::uint32_t owner = 0;  // uid and gid
    std::string content;      // of a file; of a link its target
  };

  // Paths are relative; parents come into being as directories 0755 of root. A second call for a path replaces.
  void add_dir(const std::string& path, std::uint32_t mode = 0755, std::uint32_t owner = 0);
  void add_file(const std::string& path, std::string content, std::uint32_t mode = 0644);
  void add_link(const std::string& path, std::string target);
  bool has(const std::string& path) const { return nodes_.contains(path); }

  std::string digest() const;  // sha-256 hex over every path, mode, owner and content
  std::uint64_t content_bytes() const;
  // Preconditions: `dir` is empty and ours alone.
  Result<> write_to(int dir) const;

 private:
  void add_parents(const std::string& path);
  std::map<std::string, Node> nodes_;  // a directory sorts before what is in it
};

}  // namespace osb::image
