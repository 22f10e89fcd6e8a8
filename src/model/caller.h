// Who asks: the name of an API key. Ids of other callers' sandboxes read as not found.
#pragma once
#include <string>

namespace osb {

struct Caller {
  std::string name;       // key name, "local" on the unix socket, "anonymous" when auth is off
  bool sees_all = false;  // local and anonymous callers, and keys marked so, see every sandbox
  std::string request_id;
};

}  // namespace osb
