// `volumes` of a create request: from JSON to VolumeSpec, judged once. Wrong types are Errc::malformed; a value we refuse is
// Errc::invalid_argument with a VOLUME:: code and the field.
#pragma once
#include <boost/json/value.hpp>
#include <vector>

#include "base/result.h"
#include "model/volume.h"

namespace osb {

inline constexpr std::size_t kMaxVolumes = 16;
inline constexpr std::size_t kMaxMountPath = 255;  // as long as the launcher's messages take
inline constexpr std::uint64_t kMinVolumeBytes = 16ull << 20;
inline constexpr std::uint64_t kMaxVolumeBytes = 1ull << 40;

Result<std::vector<VolumeSpec>> parse_volumes(const boost::json::value& list);

// DNS label: lowercase letters, digits and '-', a letter or digit at both ends.
bool is_volume_name(std::string_view name, std::size_t longest);
// "1Gi", "512Mi": what `pvc.storage` and `volume create --size` may say.
Result<std::uint64_t> parse_volume_size(std::string_view text);

}  // namespace osb
