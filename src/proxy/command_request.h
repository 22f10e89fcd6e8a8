// From a request to execd to the Command that it would run, read the way execd reads it.
#pragma once
#include <string>
#include <string_view>

#include "model/command_policy.h"
#include "proxy/command_audit.h"

namespace osb::proxy {

// A body that cannot be read with certainty becomes a command that is not readable, never one that is nothing.
Command command_of(CommandRoutes::Judged judged, std::string_view body);

// The context that code names, "" = none. A context has its language already, whatever the request says.
std::string context_of(std::string_view body);

}  // namespace osb::proxy
