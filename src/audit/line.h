// One audit record as text, and back as far as continuing needs it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "audit/audit.h"

namespace osb::audit {

std::string make_line(std::uint64_t seq, const Caller& caller, const Event& event);  // with its newline
// The sequence number of the last whole record in `lines` (each ended by a newline); garbage lines after it are passed over.
std::optional<std::uint64_t> last_seq(std::string_view lines);

bool begins_like_record(std::string_view fragment);

}  // namespace osb::audit
