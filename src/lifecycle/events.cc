#include "lifecycle/events.h"

namespace osb::lifecycle {
namespace {

std::string_view end_type(const Status& now) {
  if (now.reason == "OOMKilled") return "oom_killed";
  if (now.reason == "SANDBOX_LOST") return "lost";
  return now.state == State::terminated ? "exited" : "failed";
}

std::string_view change_type(State before, const Status& now) {
  switch (now.state) {
    case State::running: return before == State::resuming ? "resumed" : before == State::pending ? "started" : "running";
    case State::paused: return "paused";
    case State::terminated:
    case State::failed: return end_type(now);
    case State::pending:
    case State::pausing:
    case State::resuming:
    case State::stopping: break;
  }
  return "changed";
}

}  // namespace

Event change_event(State before, const Status& now) { return {now.changed_at, change_type(before, now), now.reason, now.message}; }

EventLog begin_events(const Sandbox& sandbox) {
  EventLog log;
  auto from = sandbox.spec.image.empty() ? std::string() : " from image " + sandbox.spec.image;
  if (sandbox.status.state == State::pending) {
    log.add({sandbox.created_at, "created", "CONTAINER_CREATED", "The sandbox was asked for" + from + "."});
    log.add({sandbox.created_at, "pulling", sandbox.status.reason, sandbox.status.message});
    return log;
  }
  log.add({sandbox.created_at, "created", "CONTAINER_CREATED", "The sandbox was made" + from + "."});
  log.add({sandbox.created_at, "started", "CONTAINER_RUNNING", "The sandbox is running."});
  return log;
}

EventLog recall_events(const Sandbox& sandbox) {
  auto log = begin_events(sandbox);
  if (sandbox.status.state != State::running && sandbox.status.state != State::pending)
    log.add(change_event(State::running, sandbox.status));
  return log;
}

}  // namespace osb::lifecycle
