#include "image/tree.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "image/sha256.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"

namespace osb::image {

namespace fs = sys::fs;

void Tree::add_parents(const std::string& path) {
  for (std::size_t at = path.find('/'); at != path.npos; at = path.find('/', at + 1))
    nodes_.try_emplace(path.substr(0, at), Node{Kind::directory, 0755, 0, {}});
}

void Tree::add_dir(const std::string& path, std::uint32_t mode, std::uint32_t owner) {
  add_parents(path);
  nodes_[path] = Node{Kind::directory, mode, owner, {}};
}

void Tree::add_file(const std::string& path, std::string content, std::uint32_t mode) {
  add_parents(path);
  nodes_[path] = Node{Kind::file, mode, 0, std::move(content)};
}

void Tree::add_link(const std::string& path, std::string target) {
  add_parents(path);
  nodes_[path] = Node{Kind::symlink, 0777, 0, std::move(target)};
}

std::string Tree::digest() const {
  Sha256 hash;
  hash.update("opensandbox tree 1\n");
  for (const auto& [path, node] : nodes_) {
    hash.update(cat(static_cast<char>(node.kind), ' ', node.mode, ' ', node.owner, ' ', path.size(), ' ', node.content.size(), '\n'));
    hash.update(path);
    hash.update(node.content);
  }
  return hash.hex();
}

std::uint64_t Tree::content_bytes() const {
  std::uint64_t total = 0;
  for (const auto& [path, node] : nodes_)
    if (node.kind == Kind::file) total += node.content.size();
  return total;
}

namespace {

Result<> write_node(int dir, const std::string& path, const Tree::Node& node) {
  switch (node.kind) {
    case Tree::Kind::directory: CHECK_OK(fs::make_dir_at(dir, path, 0700)); break;
    case Tree::Kind::symlink: return fs::make_symlink_at(dir, path, node.content);
    case Tree::Kind::file: {
      TRY(auto fd, fs::open_beneath(dir, path, O_WRONLY | O_CREAT | O_EXCL, 0600));
      CHECK_OK(fs::write_fully_at(fd.get(), std::as_bytes(std::span(node.content)), 0));
      break;
    }
  }
  TRY(auto fd, fs::open_beneath(dir, path, O_RDONLY));
  // An ordinary user's layer is all his own; a sandbox of his sees one user anyway.
  if (::geteuid() == 0) CHECK_OK(fs::set_owner(fd.get(), node.owner, node.owner));
  return fs::set_mode(fd.get(), node.mode);
}

}  // namespace

Result<> Tree::write_to(int dir) const {
  for (const auto& [path, node] : nodes_) CHECK_OK(write_node(dir, path, node));
  return fs::set_mode(dir, 0755);
}

}  // namespace osb::image
