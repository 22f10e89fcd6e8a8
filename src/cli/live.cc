#include "cli/live.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/sanitise.h"
#include "cli/signals.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr int kEveryMillis = 1000;
constexpr std::string_view kEnter = "\033[?1049h\033[?25l";  // the other screen, no cursor
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";
constexpr std::string_view kHome = "\033[H";
constexpr std::string_view kRestOfLine = "\033[K";
constexpr std::string_view kRestOfScreen = "\033[J";

// Code points, not bytes: a cut in the middle of one would show as rubbish.
std::string_view first_columns(std::string_view line, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < line.size(); ++at)
    if ((line[at] & 0xc0) != 0x80 && seen++ == columns) break;
  return line.substr(0, at);
}

std::string fit(std::string_view picture) {
  winsize size{};
  bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 && size.ws_col > 1;
  std::size_t rows = known ? size.ws_row - 1u : 24;
  std::size_t columns = known ? size.ws_col : 80;
  std::string out(kHome);
  for (auto line : split(picture, '\n')) {
    if (rows-- == 0) break;
    out += cat(first_columns(line, columns), kRestOfLine, "\r\n");
  }
  return out + std::string(kRestOfScreen);
}

class OtherScreen {
 public:
  OtherScreen() { write_all(STDOUT_FILENO, kEnter); }
  OtherScreen(const OtherScreen&) = delete;
  OtherScreen& operator=(const OtherScreen&) = delete;
  ~OtherScreen() { write_all(STDOUT_FILENO, kLeave); }
};

}  // namespace

Result<int> show_live(bool once, const std::function<Result<std::string>()>& draw) {
  TRY(auto picture, draw());
  if (once || ::isatty(STDOUT_FILENO) == 0) {
    CHECK_OK(print(picture));
    return kExitOk;
  }
  Signals signals;
  OtherScreen screen;
  for (;;) {
    CHECK_OK(print(fit(picture)));
    pollfd interrupt{signals.fd(), POLLIN, 0};
    if (::poll(&interrupt, 1, kEveryMillis) > 0 && signals.take()) return kExitOk;
    TRY(picture, draw());
  }
}

}  // namespace osb::cli
