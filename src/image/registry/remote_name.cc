#include "image/registry/remote_name.h"

#include "base/text.h"
#include "image/reference.h"

namespace osb::image::registry {
namespace {

// The one registry whose API lives under another name than people write, and which files plain names under a folder.
constexpr std::string_view kNicknamed = "docker.io";

Error no_registry(std::string_view reference) {
  return Error(Errc::not_found,
               cat("no image named ", json_string(reference.substr(0, 200)), ", and the name says no registry to pull it from"))
      .with_code("SANDBOX::IMAGE_NOT_FOUND")
      .with_hint("write the registry in front, as in registry.example/tools/python:3.12, or set images.default_registry")
      .at("image");
}

}  // namespace

bool names_registry(std::string_view reference) {
  std::size_t slash = reference.find('/');
  if (slash == reference.npos) return false;
  std::string_view first = reference.substr(0, slash);
  return first == "localhost" || first.find_first_of(".:") != first.npos;
}

Result<RemoteName> remote_name(std::string_view reference, std::string_view default_registry) {
  TRY(auto parts, split_name(reference));
  std::string path = parts.path;
  if (!names_registry(path)) {
    if (default_registry.empty() || path == kHostName || path == "sha256") return no_registry(reference);
    path = cat(default_registry, '/', path);
  }
  RemoteName out;
  std::size_t slash = path.find('/');
  out.registry = path.substr(0, slash);
  out.repository = path.substr(slash + 1);
  out.tag = parts.tag;
  out.digest = parts.digest;
  out.api_host = out.registry;
  if (out.registry == kNicknamed) {
    out.api_host = cat("registry-1.", kNicknamed);
    if (out.repository.find('/') == out.repository.npos) out.repository = cat("library/", out.repository);
  }
  return out;
}

}  // namespace osb::image::registry
