// The extractor (R-TAR): writes the entries of one layer under a directory, whatever the archive tries.
//
//  * Every object is made through a descriptor of its parent, itself opened beneath the layer with no symbolic link on
//    the way. Absolute names lose their leading "/"; ".." is refused; a symbolic link is stored as text and never walked.
//  * A hard link names a regular file already in this layer. Device nodes and sockets are passed over.
//  * Owners are 0..65535 as they are in the archive. Extended attributes of the archive are dropped, all of them.
//  * A later entry of the same name replaces the earlier one. Directories get their mode, owner and time at the end.
//  * OCI whiteouts become overlayfs ones: `.wh.x` a character device 0:0, `.wh..wh..opq` trusted.overlay.opaque=y.
//
// A failure leaves the directory half-written; the caller throws it away.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "image/budget.h"
#include "image/entry.h"

namespace osb::image {

inline constexpr std::size_t kMaxPathBytes = 4096;
inline constexpr std::size_t kMaxNameBytes = 255;
inline constexpr std::size_t kMaxPathDepth = 128;
inline constexpr std::int64_t kMaxOwner = 65535;

// "/./a//b/" -> "a/b"; "" is the root itself. invalid_argument for "..", too long, too deep.
Result<std::string> clean_path(std::string_view raw);

class LayerWriter {
 public:
  // `layer` is an empty directory open for reading; both outlive the writer.
  LayerWriter(int layer, Budget& budget) : layer_(layer), budget_(budget) {}

  // Errors name the entry, escaped.
  Result<> add(const Entry& entry, EntryData& data);
  Result<> finish();
  std::uint64_t passed_over() const { return passed_over_; }  // devices, sockets

 private:
  struct Attributes {
    std::uint32_t mode = 0755;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    struct timespec mtime = {};
  };
  // Where an object goes: the open directory it is made in, its last component, and the whole clean path.
  struct Place {
    int dir = -1;
    std::string name;
    std::string path;
  };

  Result<> add_checked(const Entry& entry, EntryData& data);
  Result<> add_file(const Place& at, const Entry& entry, EntryData& data);
  Result<> add_directory(const Place& at, const Entry& entry);
  Result<> add_symlink(const Place& at, const Entry& entry);
  Result<> add_hard_link(const Place& at, const Entry& entry);
  Result<> add_fifo(const Place& at, const Entry& entry);
  Result<> add_whiteout(const Place& at);

  Result<Place> place(const std::string& path);
  Result<int> open_parent(const std::string& path);
  Result<Fd> make_parents(const std::string& path);
  Result<Fd> make_parent(int above, const std::string& name, const std::string& path);
  Result<> make_opaque(int dir, const std::string& name);
  Result<> remember_directory(const std::string& path, const Attributes& attributes);
  Result<> clear(const Place& at);
  void forget_directories(const std::string& path);

  int layer_;
  Budget& budget_;
  std::map<std::string, Attributes> directories_;  // by clean path
  std::size_t directory_names_ = 0;                // bytes held in directories_
  std::string parent_path_;                        // of parent_, the parent of the last entry
  Fd parent_;
  std::uint64_t passed_over_ = 0;
};

}  // namespace osb::image
