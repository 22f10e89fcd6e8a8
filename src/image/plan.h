// What a bundle says it holds: the layers and the configuration of one image, checked as far as words can be.
//
// Everything here was written by whoever made the image (R-IMG): sizes are bounded, digests are digests, names become
// member names only after that, and labels, users, volumes and commands are not read at all.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "image/bundle.h"

namespace osb::image {

struct PlannedLayer {
  std::string member;   // in the bundle
  std::string blob;     // sha-256 hex of the member's bytes; "" when the bundle does not say
  std::string diff_id;  // sha-256 hex of the uncompressed tar
};

struct ImageConfig {
  std::vector<std::string> diff_ids;  // bottom first
  std::vector<std::pair<std::string, std::string>> env;
  std::string working_dir;
  std::string os;
  std::string architecture;
};

struct Plan {
  std::string name;    // as the bundle calls it; "" when it does not
  std::string digest;  // "sha256:..." of the manifest (OCI) or of the configuration (docker-archive)
  ImageConfig config;
  std::vector<PlannedLayer> layers;  // bottom first
};

// `wanted` chooses among several images of a bundle; "" when the caller has no name in mind.
Result<Plan> plan_bundle(const Bundle& bundle, const std::string& wanted);

// The parts, for tests and fuzzing.
Result<Plan> plan_oci(const Bundle& bundle, const std::string& wanted);
Result<Plan> plan_docker(const Bundle& bundle, const std::string& wanted);
Result<ImageConfig> parse_config(std::string_view text);
std::string host_architecture();  // "amd64", "arm64"

}  // namespace osb::image
