// image pull: asks the daemon, shows each layer, ends with the image's name.
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <map>

#include "base/text.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/image_import.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr Millis kLongPull{3'600'000};
constexpr std::size_t kBar = 24;
constexpr std::size_t kMaxPassword = 16 * 1024;
constexpr std::size_t kMaxLine = 1 << 20;

constexpr std::array kOptions{OptionSpec{"-u,--username", "NAME", "who the registry knows you as"},
                              OptionSpec{"--password-stdin", "", "read the password from stdin"},
                              OptionSpec{"-q,--quiet", "", "no progress"},
                              kOutputOption,
                              kHostOption,
                              kKeyOption,
                              kKeyFileOption};

struct Layer {
  std::string digest;
  std::string state;
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;
};

std::string line_of(const Layer& layer) {
  std::string id = layer.digest.substr(0, 19);
  if (layer.state != "downloading") return cat(id, "  ", layer.state);
  std::size_t full = layer.total == 0 ? 0 : std::min<std::size_t>(kBar, layer.bytes * kBar / layer.total);
  std::string bar = std::string(full, '=') + (full < kBar ? ">" : "");
  bar.resize(kBar, ' ');
  return cat(id, "  [", bar, "] ", format_bytes(layer.bytes), " of ", format_bytes(layer.total));
}

// A block of moving lines on a terminal; elsewhere one plain line whenever a layer changes its state.
class Display {
 public:
  explicit Display(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

  void take(std::string_view bytes) {
    pending_ += bytes;
    for (auto end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
      if (auto object = parse_object(std::string_view(pending_).substr(0, end))) take_object(*std::move(object));
      pending_.erase(0, end + 1);
    }
    if (pending_.size() > kMaxLine) pending_.clear();
  }

  Result<json::object> result() const {
    if (const auto* error = last_.if_contains("error"); error != nullptr && error->is_object())
      return Error(Errc::invalid_argument, text_of(error->get_object(), "message")).with_hint(text_of(error->get_object(), "hint"));
    const auto* image = last_.if_contains("image");
    if (image == nullptr || !image->is_object()) return Error(Errc::unavailable, "the daemon stopped in the middle of the pull");
    return image->get_object();
  }

 private:
  void take_object(json::object object) {
    const auto* layers = object.if_contains("layers");
    if (layers != nullptr && layers->is_array() && !quiet_) show(layers->get_array());
    last_ = std::move(object);
  }

  void show(const json::array& array) {
    std::string block;
    for (const auto& item : array) {
      if (!item.is_object()) continue;
      const auto& o = item.get_object();
      Layer layer{text_of(o, "digest"), text_of(o, "state"), number_of(o, "bytes"), number_of(o, "total")};
      if (terminal_) block += cat(line_of(layer), "\033[K\n");
      std::string& before = states_[layer.digest];
      if (!terminal_ && before != layer.state) note(cat(layer.digest.substr(0, 19), ": ", layer.state));
      before = layer.state;
    }
    if (!terminal_ || block.empty()) return;
    if (height_ > 0) block = cat("\033[", height_, "A\r", block);
    height_ = array.size();
    write_all(STDERR_FILENO, block);
  }

  bool quiet_;
  bool terminal_;
  std::string pending_;
  std::size_t height_ = 0;
  std::map<std::string, std::string> states_;
  json::object last_;
};

// One line, as `cat secret | opensandbox image pull --password-stdin` gives it.
Result<std::string> read_password() {
  if (::isatty(STDIN_FILENO) == 1)
    return usage_error("--password-stdin: stdin is a terminal", "pipe the password in, from a file or a tool");
  std::string text(kMaxPassword + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    auto n = ::read(STDIN_FILENO, text.data() + size, text.size() - size);
    if (n < 0) return Error::from_errno("read the password", errno);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  text.resize(size);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty() || text.size() > kMaxPassword) return usage_error("--password-stdin: no password on stdin, or one that is too long");
  return text;
}

Result<json::object> body_of(const Args& args) {
  json::object body{{"name", args.operands[0]}};
  if (args.has("username") != args.has("password-stdin")) return usage_error("--username and --password-stdin belong together");
  if (!args.has("username")) return body;
  TRY(auto password, read_password());
  body["auth"] = json::object{{"username", args.get("username")}, {"password", password}};
  return body;
}

Result<int> pull_image(const Args& args) {
  TRY(auto body, body_of(args));
  TRY(auto api, find_daemon(args));
  TRY(auto key, key_for(args, api.address()));
  Request request{"POST", "/v1/images/pull", {{"Content-Type", "application/json"}}, json::serialize(body)};
  if (!key.empty()) request.headers.emplace_back("OPEN-SANDBOX-API-KEY", key);
  TRY(auto connection, api.another_connection());
  Display display(args.has("quiet"));
  std::string whole;
  auto sink = [&](std::string_view bytes) {
    if (whole.size() < 64 * 1024) whole += bytes;
    display.take(bytes);
    return true;
  };
  TRY(auto reply, connection.stream(request, std::chrono::steady_clock::now() + kLongPull, sink));
  reply.body = whole;
  if (reply.status > 299) return error_of(reply);
  TRY(auto image, display.result());
  CHECK_OK(print(wants_json(args) ? pretty(image) : cat(text_of(image, "name"), "\n")));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kImagePull{
    .name = "image pull",
    .also = {},
    .summary = "fetch an image from a registry",
    .usage = "[options] NAME",
    .details =
        "NAME begins with the registry: registry.example/tools/python:3.12, or ends in a digest: @sha256:...\n"
        "Short names are pulled only where the daemon has images.default_registry. Layers that are here already are not\n"
        "fetched again; a pull that was cut goes on where it stopped. Ctrl-C cancels it.",
    .examples =
        "opensandbox image pull localhost:5000/tools/python:3.12\n"
        "cat token | opensandbox image pull --username me --password-stdin registry.example/team/app:1",
    .options = kOptions,
    .operand = Operand::image,
    .min_operands = 1,
    .max_operands = 1,
    .main = pull_image,
};

}  // namespace osb::cli
