#include "image/reference.h"

#include <algorithm>

#include "base/text.h"
#include "image/sha256.h"

namespace osb::image {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";
constexpr std::size_t kMaxTag = 128;

bool is_low_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_tag_char(char c) { return is_low_alnum(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-'; }

bool is_part(std::string_view part) {
  if (part.empty() || !is_low_alnum(part.front()) || !is_low_alnum(part.back()) || part.find("..") != part.npos) return false;
  return std::all_of(part.begin(), part.end(), [](char c) { return is_low_alnum(c) || c == '.' || c == '_' || c == '-'; });
}

bool is_tag(std::string_view tag) {
  if (tag.empty() || tag.size() > kMaxTag || tag.front() == '.' || tag.front() == '-') return false;
  return std::all_of(tag.begin(), tag.end(), is_tag_char);
}

bool is_path(std::string_view path) {
  auto parts = split(path, '/');
  return std::all_of(parts.begin(), parts.end(), is_part);
}

bool is_port(std::string_view text) {
  auto port = parse_int<std::uint16_t>(text);
  return port && *port > 0;
}

// The first part may be a registry with its port.
bool is_path_with_host(std::string_view path) {
  std::size_t colon = path.find(':');
  if (colon == path.npos) return is_path(path);
  std::size_t slash = path.find('/');
  if (slash == path.npos || slash < colon) return false;
  return is_part(path.substr(0, colon)) && is_port(path.substr(colon + 1, slash - colon - 1)) && is_path(path.substr(slash + 1));
}

Error bad_name(std::string_view reference) {
  return Error(Errc::invalid_argument, cat("not an image name: ", json_string(reference.substr(0, 80))))
      .with_hint("a name is lowercase letters and digits with . _ - / between them, and may end in :tag, as in \"tools/python:3.12\"")
      .at("image");
}

}  // namespace

Result<NameParts> split_name(std::string_view reference) {
  if (reference.size() > kMaxName) return bad_name(reference);
  NameParts parts;
  if (std::size_t at = reference.find('@'); at != reference.npos) {
    std::string_view digest = reference.substr(at + 1);
    if (!digest.starts_with(kDigestPrefix) || !is_sha256_hex(digest.substr(kDigestPrefix.size()))) return bad_name(reference);
    parts.digest = digest;
    reference = reference.substr(0, at);
  }
  std::size_t slash = reference.rfind('/');
  std::size_t colon = reference.find(':', slash == reference.npos ? 0 : slash);
  std::string_view path = reference.substr(0, colon);
  std::string_view tag = colon == reference.npos ? "latest" : reference.substr(colon + 1);
  if (!is_path_with_host(path) || !is_tag(tag)) return bad_name(reference);
  parts.path = path;
  parts.tag = tag;
  return parts;
}

Result<std::string> full_name(std::string_view reference) {
  if (reference.starts_with(kDigestPrefix) && is_sha256_hex(reference.substr(kDigestPrefix.size()))) return std::string(reference);
  TRY(auto parts, split_name(reference));
  if (!parts.digest.empty()) return cat(parts.path, '@', parts.digest);
  if (parts.path == kHostName && parts.tag == "latest") return std::string(kHostName);
  return cat(parts.path, ':', parts.tag);
}

Result<std::string> new_name(std::string_view reference) {
  TRY(auto name, full_name(reference));
  std::string_view path = std::string_view(name).substr(0, name.find_first_of(":@"));
  if (path == kHostName || path == "sha256")
    return Error(Errc::invalid_argument, cat("the name \"", path, "\" is taken by OpenSandbox itself")).at("name");
  return name;
}

std::string short_name(std::string_view found) {
  for (std::string_view prefix : {"docker.io/library/", "docker.io/", "localhost/"})
    if (found.starts_with(prefix)) return std::string(found.substr(prefix.size()));
  return std::string(found);
}

std::string file_of(std::string_view name) {
  std::string file(name);
  // '+' cannot be in a name, and where '@' stands in one no tag can begin, so two names never share a file.
  std::replace(file.begin(), file.end(), '/', '+');
  std::replace(file.begin(), file.end(), ':', '@');
  return file + ".json";
}

}  // namespace osb::image
