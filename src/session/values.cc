#include "session/values.h"

namespace osb::session {

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::exited: return "exited";
    case Cause::signalled: return "signalled";
    case Cause::timed_out: return "timed_out";
    case Cause::out_of_memory: return "out_of_memory";
    case Cause::interrupted: return "interrupted";
    case Cause::session_ended: return "session_ended";
  }
  return "exited";
}

}  // namespace osb::session
