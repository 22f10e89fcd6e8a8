#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "cli/sanitise.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace osb::cli {
namespace {

constexpr auto kEvery = std::chrono::milliseconds(100);
constexpr std::size_t kBar = 20;

std::string bar(std::uint64_t done, std::uint64_t size) {
  auto full = static_cast<std::size_t>(std::min<std::uint64_t>(kBar, size == 0 ? 0 : done * kBar / size));
  return cat("[", std::string(full, '#'), std::string(kBar - full, '.'), "] ",
             size == 0 ? 0 : std::min<std::uint64_t>(100, done * 100 / size), "%");
}

}  // namespace

Progress::Progress() : on_(::isatty(STDERR_FILENO) == 1) {}

void Progress::begin(std::string_view name, std::uint64_t size) {
  name_ = sanitise(name.size() > 40 ? name.substr(name.size() - 40) : name);
  size_ = size;
  done_ = 0;
  started_ = std::chrono::steady_clock::now();
  next_ = started_ + kEvery;  // what is over by then needs no bar
}

void Progress::add(std::uint64_t bytes) {
  done_ += bytes;
  if (on_ && std::chrono::steady_clock::now() >= next_) show();
}

void Progress::show() {
  auto now = std::chrono::steady_clock::now();
  auto millis = std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::milliseconds>(now - started_).count());
  auto rate = done_ * 1000 / static_cast<std::uint64_t>(millis);
  write_all(STDERR_FILENO, cat("\r\x1b[K", name_, "  ", size_ > 0 ? cat(bar(done_, size_), "  ") : "", format_bytes(done_), "  ",
                               format_bytes(rate), "/s"));
  next_ = now + kEvery;
  shown_ = true;
}

void Progress::clear() {
  if (std::exchange(shown_, false)) write_all(STDERR_FILENO, "\r\x1b[K");
}

}  // namespace osb::cli
