#include "image/plan.h"

#include "base/text.h"

namespace osb::image {

Result<Plan> plan_bundle(const Bundle& bundle, const std::string& wanted) {
  // Newer docker-archives are OCI layouts as well; those say the digest of every part, so they are read as such.
  bool oci = bundle.has("oci-layout") && bundle.has("index.json");
  if (oci) return plan_oci(bundle, wanted);
  if (bundle.has("manifest.json")) return plan_docker(bundle, wanted);
  return Error(Errc::invalid_argument, "neither an OCI layout (oci-layout, index.json) nor a docker-archive (manifest.json)")
      .with_hint("to import a plain root file system, pack it: tar -C DIR -cf root.tar .");
}

}  // namespace osb::image
