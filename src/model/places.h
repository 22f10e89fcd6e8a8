// Where an instance keeps its things unless it is told: root's below /run and /var/lib, an ordinary user's where his session keeps its own.
#pragma once
#include <string>

namespace osb {

// Sockets and locks: $XDG_RUNTIME_DIR/opensandbox, else /run/user/<uid>/opensandbox, else /tmp/opensandbox-<uid>.
std::string usual_run_dir();
// Records and images: $XDG_STATE_HOME/opensandbox, else ~/.local/state/opensandbox, else /tmp/opensandbox-<uid>/state.
std::string usual_state_dir();

}  // namespace osb
