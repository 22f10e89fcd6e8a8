#include <algorithm>

#include "session/service.h"

namespace osb::session {
namespace {

// The first bytes are kept: they say what a command was about to do, and they do not change while it goes on.
void keep(std::string& kept, bool& truncated, std::string_view bytes, std::uint64_t most) {
  auto room = most - std::min<std::uint64_t>(most, kept.size());
  truncated |= bytes.size() > room;
  kept.append(bytes.substr(0, room));
}

}  // namespace

Task<Result<>> Collector::take(ExecEvent event) {
  if (auto* started = std::get_if<Started>(&event.what)) {
    session_id = std::move(started->session_id);
    exec_id = std::move(started->exec_id);
  } else if (auto* output = std::get_if<Output>(&event.what)) {
    if (output->is_stderr) {
      keep(err, err_truncated, output->bytes, most_);
    } else {
      keep(out, out_truncated, output->bytes, most_);
    }
  } else if (auto* result = std::get_if<CodeResult>(&event.what)) {
    results.push_back(std::move(*result));
  } else if (auto* end = std::get_if<Exit>(&event.what)) {
    exit = std::move(*end);
  }
  co_return Ok{};
}

}  // namespace osb::session
