// A pull: documents, then the layers that are not here yet, three at a time, into an OCI layout of our own making, which
// the importer unpacks by the same rules as one that came in a file.
#pragma once
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/image.h"
#include "image/registry/blob.h"
#include "image/registry/documents.h"

namespace osb::image::registry {

// What people see of a pull. Safe to use from several threads.
class Progress {
 public:
  using Sink = std::function<void(const std::vector<LayerProgress>&)>;
  explicit Progress(Sink sink) : sink_(std::move(sink)) {}
  void begin(const Documents& documents);
  void set(std::size_t layer, LayerProgress::State state);
  void set_bytes(std::size_t layer, std::uint64_t bytes);
  // By digest of the uncompressed layer, as the importer calls it.
  void set_diff(const std::string& diff_id, LayerProgress::State state);

 private:
  void tell(bool always);
  Sink sink_;
  std::mutex mutex_;
  std::vector<LayerProgress> layers_;
  std::vector<std::string> diff_ids_;
  std::int64_t told_at_ = 0;
};

struct PullPlace {
  int layout = -1;  // an empty directory that becomes the layout
  Downloads& downloads;
  std::function<Result<bool>(const std::string& diff_id)> layer_exists;
  std::uint64_t max_bytes = 0;  // compressed, all layers together
};

// Fills the layout. Layers whose directory exists are left out of it.
Result<Documents> fetch_layout(Session& session, const PullPlace& place, Progress& progress);

}  // namespace osb::image::registry
