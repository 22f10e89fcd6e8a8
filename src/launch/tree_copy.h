// Copies what a sandbox has written into a layer of the image store. The source is hostile and stands still: every name is
// taken through the descriptor of its directory, no symbolic link is followed, and bytes, entries and depth are bounded.
//
//  * Owners move from the sandbox's range to 0..65535, as layers keep them. Modes stay whole: layers are mounted nosuid.
//  * Hard links stay links, holes stay holes, whiteouts and opaque directories stay what they are to overlayfs.
//  * Of extended attributes only user.* come along. Sockets are passed over; a device node is a failure.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace osb::launch {

struct CopyLimits {
  std::uint64_t bytes = 0;    // of data; holes are free
  std::uint64_t entries = 0;  // of all kinds
  unsigned depth = 128;       // directories below one another
};

class TreeCopy {
 public:
  // `links` is an empty directory on the layer's file system; it is full of names afterwards. Both outlive the copy.
  TreeCopy(CopyLimits limits, std::uint32_t first_id, int layer, int links)
      : limits_(limits), first_id_(first_id), layer_(layer), links_(links) {}

  // Everything in the directory `from`, into the layer's directory `path` ("" = the layer itself), which is made when it is
  // missing. Nothing is made for an empty source.
  Result<> add(int from, const std::string& path);

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t entries() const { return entries_; }
  std::uint64_t passed_over() const { return passed_over_; }

 private:
  Result<Fd> directory_in_layer(const std::string& path);
  Result<> children(int from, int to, unsigned depth);
  Result<> entry(int from, int to, const char* name, unsigned depth);
  Result<> file(int from, int to, const char* name, const struct stat& info);
  Result<> directory(int from, int to, const char* name, const struct stat& info, unsigned depth);
  Result<> symlink(int from, int to, const char* name, const struct stat& info);
  Result<> fifo(int to, const char* name, const struct stat& info);
  Result<> content(int from, int to, std::int64_t size);
  Result<> dress(int fd, const struct stat& info);
  Result<> dress_at(int dir, const char* name, const struct stat& info, bool set_mode);
  Result<> charge_bytes(std::uint64_t bytes);
  Result<> charge_entry();
  Result<> check_room();
  Result<std::uint32_t> inner(std::uint32_t id) const;

  CopyLimits limits_;
  std::uint32_t first_id_;
  int layer_;
  int links_;
  std::uint64_t bytes_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t passed_over_ = 0;
  std::uint64_t room_checked_at_ = 0;
};

}  // namespace osb::launch
