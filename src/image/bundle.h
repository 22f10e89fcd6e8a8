// A bundle: named files that together are an image (an OCI layout or a docker-archive), in a directory or in a tar.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "image/budget.h"
#include "image/byte_source.h"

namespace osb::image {

class Bundle {
 public:
  virtual ~Bundle() = default;
  virtual bool has(const std::string& member) const = 0;
  // not_found when it is absent or no regular file. The bundle outlives the stream.
  virtual Result<std::unique_ptr<ByteSource>> open(const std::string& member) const = 0;
  Result<std::string> read(const std::string& member, std::size_t max_bytes) const;
};

// Symbolic links in the directory are not followed.
std::unique_ptr<Bundle> directory_bundle(Fd dir);

// `tar` is an uncompressed tar in a regular file. Two members of one name are refused: which is meant?
Result<std::unique_ptr<Bundle>> tar_bundle(Fd tar, Budget& budget);

enum class ArchiveShape { root_file_system, bundle };
// Looks at names only, and only until one cannot belong to a bundle.
Result<ArchiveShape> shape_of(ByteSource& plain_tar, Budget& budget);

}  // namespace osb::image
