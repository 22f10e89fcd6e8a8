#include "model/states.h"

#include "base/text.h"

namespace osb {

std::optional<State> parse_state(std::string_view name) {
  for (auto state :
       {State::pending, State::running, State::pausing, State::paused, State::resuming, State::stopping, State::terminated, State::failed})
    if (iequals(name_of(state), name)) return state;
  return std::nullopt;
}

}  // namespace osb
