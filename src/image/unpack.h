// One layer: from a stream (plain or compressed tar) to a directory, hashed on the way.
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "image/budget.h"
#include "image/byte_source.h"

namespace osb::image {

struct LayerFacts {
  std::string diff_id;            // sha-256 hex of the uncompressed tar, to its last byte
  std::uint64_t bytes = 0;        // of files
  std::uint64_t passed_over = 0;  // device nodes and sockets
  bool ends_properly = false;     // the tar has its end mark
};

// `layer` is an empty directory; half-written after a failure. The stream is read to its end.
Result<LayerFacts> unpack_layer(ByteSource& stream, int layer, Budget& budget);
// The diff id alone, for a layer whose directory is there already.
Result<std::string> hash_layer(ByteSource& stream, Budget& budget);

}  // namespace osb::image
