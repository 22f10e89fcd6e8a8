// Index, manifest and configuration of one image, each checked against its digest before it is read.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "image/descriptor.h"
#include "image/plan.h"
#include "image/registry/session.h"

namespace osb::image::registry {

struct Documents {
  std::string media_type;  // of the manifest
  std::string manifest_hex;
  std::string manifest_text;
  Manifest manifest;
  std::string config_text;
  std::vector<std::string> diff_ids;  // bottom first, as many as layers
};

Result<Documents> fetch_documents(Session& session);

// The variant of a multi-platform image for this host. unsupported, naming what there is, when there is none.
Result<Descriptor> choose_platform(const std::vector<Descriptor>& all);
// The type of a document: what the registry says, else what the document says of itself.
Result<std::string> type_of(std::string_view content_type, std::string_view text);

}  // namespace osb::image::registry
