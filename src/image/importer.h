// From a file to layer directories in a work directory: chooses the format, checks every digest, unpacks.
//
// Nothing outside the work directory changes; the store moves the finished layers into place.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/budget.h"
#include "image/image.h"
#include "image/plan.h"
#include "image/work_dir.h"

namespace osb::image {

struct BuiltImage {
  Image image;                    // complete but for created_at; layers topmost first
  std::vector<std::string> made;  // layers to be found in the work directory under their digest; the others existed
};

struct ImportContext {
  const WorkDir& work;
  Budget& budget;
  std::string wanted;                                                   // full name; "" = the archive's own
  std::function<Result<bool>(const std::string& layer)> layer_exists;   // and is complete
  std::function<Result<std::uint64_t>(const std::string&)> layer_size;  // of one that exists
  // A pull leaves out the blobs of layers that exist: the configuration, whose digest is known, vouches for them.
  bool existing_need_no_blob = false;
  std::function<void(const std::string& layer, bool done)> on_layer = {};
};

Result<BuiltImage> import_path(const std::string& path, const ImportContext& context);
// `dir` is an OCI layout.
Result<BuiltImage> import_layout(Fd dir, const ImportContext& context);

}  // namespace osb::image
