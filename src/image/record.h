// How an image is written down: one small JSON file a name.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "image/image.h"

namespace osb::image {

inline constexpr std::size_t kMaxRecord = 4u << 20;

std::string to_record(const Image& image);
// Checks every member: layers are digests, so that they are safe as directory names.
Result<Image> from_record(std::string_view text);

}  // namespace osb::image
