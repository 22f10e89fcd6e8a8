// Handing an archive to the daemon and showing how far it is.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/spec.h"

namespace osb::cli {

// The daemon of `args` reads `path`, an absolute path on its machine, and keeps it as `name` (empty: the name in the archive).
// A moving line on a terminal meanwhile; a readable `interrupt` (a signalfd) ends it. The image as the daemon describes it, or its refusal.
Result<boost::json::object> import_archive(const Args& args, const std::string& path, const std::string& name, int interrupt = -1);

// A member that counts something; 0 when there is none.
std::uint64_t number_of(const boost::json::object& object, std::string_view key);

}  // namespace osb::cli
