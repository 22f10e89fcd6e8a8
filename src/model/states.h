// The states of a sandbox and the only table that says which may follow which.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace osb {

enum class State : std::uint8_t { pending, running, pausing, paused, resuming, stopping, terminated, failed };

constexpr bool may_go(State from, State to) noexcept {
  switch (from) {
    case State::pending: return to == State::running || to == State::failed || to == State::stopping;
    case State::running: return to == State::pausing || to == State::stopping || to == State::terminated || to == State::failed;
    case State::pausing: return to == State::paused || to == State::running || to == State::stopping || to == State::failed;
    case State::paused: return to == State::resuming || to == State::stopping || to == State::failed;
    case State::resuming: return to == State::running || to == State::paused || to == State::stopping || to == State::failed;
    case State::stopping: return to == State::terminated || to == State::failed;
    case State::terminated:
    case State::failed: return to == State::stopping;  // a finished sandbox can still be deleted
  }
  return false;
}
static_assert(!may_go(State::terminated, State::running));

constexpr std::string_view name_of(State state) noexcept {
  switch (state) {
    case State::pending: return "Pending";
    case State::running: return "Running";
    case State::pausing: return "Pausing";
    case State::paused: return "Paused";
    case State::resuming: return "Resuming";
    case State::stopping: return "Stopping";
    case State::terminated: return "Terminated";
    case State::failed: return "Failed";
  }
  return "Unknown";
}

// Exact wire name, compared without case.
std::optional<State> parse_state(std::string_view name);

}  // namespace osb
