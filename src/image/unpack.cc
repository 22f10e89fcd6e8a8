#include "image/unpack.h"

#include <optional>

#include "image/archive_reader.h"
#include "image/layer_writer.h"

namespace osb::image {
namespace {

// A stream with its compression taken off, if it has one, and hashed.
class PlainTar {
 public:
  static Result<std::unique_ptr<PlainTar>> over(ByteSource& stream, Budget& budget) {
    auto made = std::make_unique<PlainTar>(stream);
    TRY(auto head, made->peeked_.peek());
    Compression compression = detect_compression(head);
    ByteSource* plain = &made->peeked_;
    if (compression != Compression::none) plain = &made->decompressed_.emplace(made->peeked_, compression, budget);
    made->hashed_.emplace(*plain, &budget);
    return made;
  }
  explicit PlainTar(ByteSource& stream) : peeked_(stream) {}
  HashedSource& bytes() { return *hashed_; }

 private:
  PeekedSource peeked_;
  std::optional<DecompressedSource> decompressed_;
  std::optional<HashedSource> hashed_;
};

}  // namespace

Result<LayerFacts> unpack_layer(ByteSource& stream, int layer, Budget& budget) {
  TRY(auto plain, PlainTar::over(stream, budget));
  LayerFacts facts;
  std::uint64_t before = budget.bytes();
  TarReader reader(plain->bytes());
  LayerWriter writer(layer, budget);
  while (true) {
    TRY(auto entry, reader.next_entry());
    if (!entry) break;
    CHECK_OK(writer.add(*entry, reader));
  }
  CHECK_OK(writer.finish());
  CHECK_OK(plain->bytes().drain());
  facts.diff_id = plain->bytes().hex();
  facts.bytes = budget.bytes() - before;
  facts.passed_over = writer.passed_over();
  facts.ends_properly = plain->bytes().ends_in_zeros();
  return facts;
}

Result<std::string> hash_layer(ByteSource& stream, Budget& budget) {
  TRY(auto plain, PlainTar::over(stream, budget));
  CHECK_OK(plain->bytes().drain());
  return plain->bytes().hex();
}

}  // namespace osb::image
