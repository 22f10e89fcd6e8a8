#include "launch/measure.h"

#include <fcntl.h>

#include "base/text.h"
#include "sys/kernel_file.h"

namespace osb::launch {
namespace {

// Fields of a line of /proc/net/dev behind the name: bytes received is the first, bytes sent the ninth.
constexpr std::size_t kSentField = 8;

void add_line(NetworkUsage& usage, std::string_view fields) {
  std::size_t index = 0;
  for (auto word : split(fields, ' ')) {
    if (word.empty()) continue;
    auto value = parse_int<std::uint64_t>(word).value_or(0);
    if (index == 0) usage.received_bytes += value;
    if (index == kSentField) usage.sent_bytes += value;
    ++index;
  }
}

}  // namespace

// A read-only root has nothing below it that could fill up: the writable layer is what we mounted at /workspace, in both
// modes of the root. A mount point cannot be moved or replaced from inside, and O_PATH opens nothing.
sys::fs::Space store_of(std::int32_t pid) {
  auto root = sys::open_dir(cat("/proc/", pid, "/root"));
  if (!root) return {};
  auto store = sys::open_at(root->get(), "workspace", O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!store) return {};
  auto space = sys::fs::space_of(store->get());
  return space && space->free_bytes <= space->total_bytes ? *space : sys::fs::Space{};
}

NetworkUsage parse_net_dev(std::string_view text) {
  NetworkUsage usage;
  for (auto line : split(text, '\n'))
    if (auto colon = line.find(':'); colon != std::string_view::npos) add_line(usage, line.substr(colon + 1));
  return usage;
}

NetworkUsage network_of(std::int32_t pid) {
  auto text = sys::read_file(cat("/proc/", pid, "/net/dev"), 64 * 1024);
  return text ? parse_net_dev(*text) : NetworkUsage{};
}

}  // namespace osb::launch
