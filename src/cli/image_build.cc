#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/fd.h"
#include "base/text.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/image_import.h"
#include "cli/recipe_run.h"
#include "cli/sanitise.h"
#include "cli/terminal.h"
#include "cli/units.h"
#include "sys/fs_walk.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr std::array kBuildOptions{OptionSpec{"--only", "PART,...", "build these parts alone (base comes along)"},
                                   OptionSpec{"-n,--name", "NAME", "what to call it (default: the recipe's own name)"},
                                   OptionSpec{"--to", "FOLDER", "write an OCI layout there instead of handing it to the daemon"},
                                   OptionSpec{"--list", "", "print the names of the recipes"},
                                   OptionSpec{"--keep", "", "leave the work folder, also after a failure"},
                                   kOutputOption,
                                   kHostOption,
                                   kKeyOption,
                                   kKeyFileOption};

// A folder below /var/tmp that goes with this object: the layout while it is imported, the log until it is known not to matter.
class Scratch {
 public:
  static Result<Scratch> make() {
    std::string path = "/var/tmp/osb-build.XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return Error::from_errno("make a folder in /var/tmp", errno);
    // The daemon may run as somebody else and has to read the layout.
    if (::chmod(path.c_str(), 0755) != 0) return Error::from_errno(path, errno);
    return Scratch(std::move(path));
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (path_.empty()) return;
    Fd parent(::open("/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (auto gone = sys::fs::remove_tree(parent.get(), path_.substr(path_.rfind('/') + 1)); !gone)
      warn(cat("cannot remove ", path_, ": ", gone.error().what()));
  }
  std::string layout() const { return cat(path_, "/layout"); }
  std::string log() const { return cat(path_, "/build.log"); }
  // The log outlives the failed build, the layout does not.
  void leave_log() { path_.clear(); }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// On a terminal one line that moves, otherwise a line a stage.
class StageShow {
 public:
  void operator()(const RecipeLine& at, bool again) {
    auto spent = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begun_);
    auto line = sanitise(recipe_bar(at, spent));
    if (moving_)
      write_all(STDERR_FILENO, cat("\r\033[K", line));
    else if (!again)
      write_all(STDERR_FILENO, cat(line, "\n"));
  }
  void end() const {
    if (moving_) write_all(STDERR_FILENO, "\r\033[K");
  }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  bool moving_ = ::isatty(STDERR_FILENO) == 1;
};

Result<> check_recipe(const Args& args, const std::string& folder) {
  std::string list;
  for (const auto& known : recipe_names(folder)) {
    if (!args.operands.empty() && known == args.operands[0]) return Ok{};
    list += cat(list.empty() ? "" : ", ", known);
  }
  auto what = args.operands.empty() ? std::string("which recipe?") : cat("no recipe '", args.operands[0].substr(0, 80), "'");
  return usage_error(what, cat("there is: ", list));
}

Result<int> list_recipes() {
  TRY(auto folder, recipes_folder());
  for (const auto& name : recipe_names(folder)) CHECK_OK(print(cat(name, "\n")));
  return kExitOk;
}

RecipeRun plan_run(const Args& args, const std::string& folder, const Scratch& scratch) {
  const auto& name = args.operands[0];
  RecipeRun run{cat(folder, "/build"), {name, "--out", args.get("to", scratch.layout())}, scratch.log()};
  if (args.has("only")) run.words.insert(run.words.end(), {"--only", args.get("only")});
  if (args.has("keep")) run.words.emplace_back("--keep");
  return run;
}

// What the recipe said last, for a person who will not open the log.
std::string last_line_of(const std::string& log) {
  Fd file(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  char bytes[4096];
  auto end = ::lseek(file.get(), 0, SEEK_END);
  auto n = ::pread(file.get(), bytes, sizeof bytes, std::max<off_t>(0, end - static_cast<off_t>(sizeof bytes)));
  std::string_view text(bytes, n > 0 ? static_cast<std::size_t>(n) : 0);
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

Result<RecipeLine> build(const Args& args, const std::string& folder, Scratch& scratch, Signals& signals) {
  auto run = plan_run(args, folder, scratch);
  StageShow show;
  auto built = run_recipe(run, signals, std::ref(show));
  show.end();
  if (built || built.error().sys() == EINTR) return built;
  auto why = last_line_of(scratch.log());
  if (built.error().kind() == Errc::invalid_argument) return usage_error(std::string(why.substr(why.find(' ') + 1)));
  scratch.leave_log();
  return Error(built.error().kind(), why.empty() ? built.error().what() : cat(built.error().what(), ": ", why))
      .with_hint(cat("whole log: ", run.log));
}

Result<int> build_image(const Args& args) {
  if (args.has("list")) return list_recipes();
  TRY(auto folder, recipes_folder());
  CHECK_OK(check_recipe(args, folder));
  if (!args.has("to")) {
    TRY([[maybe_unused]] auto api, find_daemon(args));  // before the minutes of a build, not after them
  }
  TRY(auto scratch, Scratch::make());
  Signals signals;
  TRY(auto built, build(args, folder, scratch, signals));
  if (args.has("to")) {
    CHECK_OK(print(cat(args.get("to"), "\n")));
    return kExitOk;
  }
  TRY(auto image, import_archive(args, scratch.layout(), args.get("name", built.text), signals.fd()));
  CHECK_OK(print(wants_json(args) ? pretty(image) : cat(text_of(image, "name"), "\n")));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kImageBuild{
    .name = "image build",
    .also = {},
    .summary = "build an image from one of the recipes that come along",
    .usage = "[options] RECIPE",
    .details =
        "Recipes are folders of images/ beside this program: code-interpreter has kernels for python, javascript, typescript,\n"
        "java, go and bash. The build needs root, mmdebstrap and the network; it works in namespaces of its own and leaves\n"
        "nothing behind. The daemon must be on this machine.",
    .examples =
        "opensandbox image build code-interpreter\n"
        "opensandbox image build code-interpreter --only python,bash --name small:latest",
    .options = kBuildOptions,
    .operand = Operand::recipe,
    .max_operands = 1,
    .main = build_image,
};

}  // namespace osb::cli
