// Archives and image documents as an attacker would write them. The first byte chooses: a layer (plain or compressed),
// an image configuration, an index, or a name. A layer must stay in its directory whatever it says.
#include <fcntl.h>
#include <stdlib.h>

#include <span>
#include <string>

#include "image/bundle.h"
#include "image/plan.h"
#include "image/reference.h"
#include "image/unpack.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"

namespace {

using namespace osb;
using namespace osb::image;
namespace fs = osb::sys::fs;

const BudgetLimits kLimits{.max_bytes = 1 << 20, .max_entries = 64, .max_nanos = 5'000'000'000, .max_ratio = 200, .ratio_after = 1 << 20};

// <temp>/canary and <temp>/layer: nothing else may ever be there.
struct Place {
  std::string path;
  Fd dir;
  Place() {
    char name[] = "/tmp/osb-tar-fuzz-XXXXXX";
    path = ::mkdtemp(name);
    dir = std::move(*fs::open_directory(path));
    (void)fs::replace_file(dir.get(), "canary", "alive", 0644, fs::Durable::no);
  }
  ~Place() {
    dir.reset();
    auto above = fs::open_directory("/tmp");
    if (above) (void)fs::remove_tree(above->get(), path.substr(5));
  }
  bool untouched() const {
    auto names = fs::list_dir(dir.get(), 100);
    auto canary = fs::open_beneath(dir.get(), "canary", O_RDONLY);
    return names && *names == std::vector<std::string>{"canary"} && canary && *fs::read_to_end(canary->get(), 100) == "alive";
  }
};

void unpack(std::span<const std::byte> bytes) {
  static Place place;
  if (!fs::make_dir_at(place.dir.get(), "layer", 0755)) ::abort();
  {
    auto layer = fs::open_beneath(place.dir.get(), "layer", O_RDONLY | O_DIRECTORY);
    Budget budget(kLimits, -1);
    MemorySource source(bytes);
    (void)unpack_layer(source, layer->get(), budget);
    Budget look(kLimits, -1);
    MemorySource again(bytes);
    (void)shape_of(again, look);
  }
  if (!fs::remove_tree(place.dir.get(), "layer") || !place.untouched()) ::abort();
}

// Every member is the input: one document plays index, manifest and configuration at once.
class OneDocument : public Bundle {
 public:
  explicit OneDocument(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool has(const std::string&) const override { return true; }
  Result<std::unique_ptr<ByteSource>> open(const std::string& member) const override {
    static const std::string layout = R"({"imageLayoutVersion":"1.0.0"})";
    auto bytes = member == "oci-layout" ? std::as_bytes(std::span(layout)) : bytes_;
    return std::unique_ptr<ByteSource>(std::make_unique<MemorySource>(bytes));
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::span<const std::byte> rest = std::as_bytes(std::span(data, size)).subspan(1);
  std::string text(reinterpret_cast<const char*>(rest.data()), rest.size());
  switch (data[0] % 8) {
    case 0: (void)parse_config(text); break;
    case 1: (void)plan_oci(OneDocument(rest), ""); break;
    case 2: (void)plan_docker(OneDocument(rest), "x:y"); break;
    case 3:
      if (auto name = full_name(text); name && (name->empty() || file_of(*name).find('/') != std::string::npos)) ::abort();
      break;
    default: unpack(rest);
  }
  return 0;
}
