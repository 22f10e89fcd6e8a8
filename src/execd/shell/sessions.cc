#include "execd/shell/sessions.h"

#include <algorithm>

namespace osb::execd::shell {

std::shared_ptr<Session> Sessions::find(std::string_view id) const {
  auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& session) { return session->id() == id; });
  return found == sessions_.end() ? nullptr : *found;
}

bool Sessions::close(std::string_view id) {
  auto session = find(id);
  if (!session) return false;
  std::erase(sessions_, session);
  session->close();
  return true;
}

Sessions::Found Sessions::find_run(std::string_view run_id) const {
  for (const auto& session : sessions_)
    if (auto run = session->find(run_id); run && run->running()) return {session, std::move(run)};
  return {};
}

}  // namespace osb::execd::shell
