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

Error bad_name(std::string_view reference) {
  return Error(Errc::invalid_argument, cat("not an image name: ", json_string(reference.substr(0, 80))))
      .with_hint("a name is lowercase letters and digits with . _ - / between them, and may end in :tag, as in \"tools/python:3.12\"")
      .at("image");
}

}  // namespace

Result<std::string> full_name(std::string_view reference) {
  if (reference.size() > kMaxName) return bad_name(reference);
  if (reference.starts_with(kDigestPrefix) && is_sha256_hex(reference.substr(kDigestPrefix.size()))) return std::string(reference);
  std::size_t colon = reference.find(':');
  std::string_view path = reference.substr(0, colon);
  std::string_view tag = colon == reference.npos ? "latest" : reference.substr(colon + 1);
  if (!is_path(path) || !is_tag(tag)) return bad_name(reference);
  if (path == kHostName && tag == "latest") return std::string(kHostName);
  return cat(path, ':', tag);
}

Result<std::string> new_name(std::string_view reference) {
  TRY(auto name, full_name(reference));
  std::string_view path = std::string_view(name).substr(0, name.find(':'));
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
  // Neither character can be in a name, so two names never share a file.
  std::replace(file.begin(), file.end(), '/', '+');
  std::replace(file.begin(), file.end(), ':', '@');
  return file + ".json";
}

}  // namespace osb::image
