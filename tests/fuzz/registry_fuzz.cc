// What a registry may say: challenges, manifests, indexes, locations, names. The first byte chooses which.
#include <boost/json.hpp>
#include <string>

#include "image/descriptor.h"
#include "image/json_text.h"
#include "image/registry/challenge.h"
#include "image/registry/documents.h"
#include "image/registry/remote_name.h"
#include "image/registry/url.h"

using namespace osb;
using namespace osb::image;

namespace {

void check(bool holds) {
  if (!holds) __builtin_trap();
}

void index_and_manifest(std::string_view text) {
  if (auto manifest = parse_manifest(text))
    for (const Descriptor& layer : manifest->layers) check(layer.hex.size() == 64 && is_layer(layer));
  auto value = parse_json(text, "index");
  if (!value || !value->is_object()) return;
  auto all = descriptors_at(value->get_object(), "manifests");
  if (!all) return;
  if (auto chosen = registry::choose_platform(*all)) check(is_for_this_host(*chosen));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      if (auto found = registry::choose_challenge({text}); found && *found && (*found)->scheme == registry::Challenge::Scheme::bearer)
        check(!(*found)->realm.empty());
      break;
    case 1: index_and_manifest(text); break;
    case 2:
      if (auto type = registry::type_of(kOciManifest, text)) check(!type->empty());
      break;
    case 3: {
      registry::Url base{{true, "registry.example", 443}, "/v2/"};
      if (auto next = registry::follow(base, text)) check(next->target.starts_with('/') && next->target.find('\n') == std::string::npos);
      break;
    }
    default:
      if (auto name = registry::remote_name(text, "registry.example"))
        check(!name->registry.empty() && name->repository.find("..") == std::string::npos);
  }
  return 0;
}
