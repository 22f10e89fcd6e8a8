// What every sandbox shows of the host, and what of the host's /proc there is to hide.
#pragma once
#include <string>
#include <vector>

#include "enter/plan.h"

namespace osb::launch {

// The directories of programs and libraries that are directories here; where one is a link, the link is in the image.
std::vector<enter::HostDirectory> host_directories();

// Those of `names` that this kernel has in /proc.
std::vector<std::string> existing_in_proc(const std::vector<const char*>& names);

}  // namespace osb::launch
