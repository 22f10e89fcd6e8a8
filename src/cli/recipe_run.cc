#include "cli/recipe_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "base/fd.h"
#include "base/text.h"
#include "cli/units.h"
#include "sys/pipe.h"

extern char** environ;

namespace osb::cli {
namespace {

constexpr int kTick = 1000;  // milliseconds between two looks at the clock
constexpr std::size_t kMaxLine = 4096;
constexpr unsigned kMaxStages = 100;
constexpr int kWrongWords = 2;  // how images/build ends when nothing was tried

bool has_builder(const std::string& folder) { return ::access(cat(folder, "/build").c_str(), X_OK) == 0; }

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value == 0 || value > kMaxStages) return std::nullopt;
  return value;
}

// The recipe's process, its standard output, and what came of it so far.
class Child {
 public:
  static Result<Child> start(const RecipeRun& run);
  Result<RecipeLine> follow(Signals& signals, const std::function<void(const RecipeLine&, bool)>& tell);

 private:
  bool read_lines(const std::function<void(const RecipeLine&, bool)>& tell);  // false at the end of the output
  void take(std::string_view line, const std::function<void(const RecipeLine&, bool)>& tell);
  bool has_ended() const;
  Result<RecipeLine> reap();

  pid_t pid_ = -1;
  Fd output_;
  std::string pending_;
  std::optional<RecipeLine> at_, done_;
  int passed_on_ = 0;
};

Result<Child> Child::start(const RecipeRun& run) {
  TRY(auto output, sys::make_pipe());
  Child child;
  child.output_ = std::move(output.read);
  Fd log(::open(run.log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!log) return Error::from_errno(run.log, errno);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.write.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, log.get(), 2);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) sigaddset(&usual, signal);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  // A group of its own: Ctrl-C reaches it once, from us.
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words{run.program};
  words.insert(words.end(), run.words.begin(), run.words.end());
  std::vector<char*> raw;
  for (auto& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  int failed = ::posix_spawn(&child.pid_, run.program.c_str(), &actions, &attributes, raw.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return Error::from_errno(cat("start ", run.program), failed);
  return child;
}

void Child::take(std::string_view line, const std::function<void(const RecipeLine&, bool)>& tell) {
  auto parsed = parse_recipe_line(line);
  if (!parsed) return;
  if (parsed->stage == 0) {
    done_ = std::move(parsed);
    return;
  }
  at_ = std::move(parsed);
  tell(*at_, false);
}

bool Child::read_lines(const std::function<void(const RecipeLine&, bool)>& tell) {
  char bytes[4096];
  auto n = ::read(output_.get(), bytes, sizeof bytes);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  pending_.append(bytes, static_cast<std::size_t>(n));
  for (auto end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
    take(std::string_view(pending_).substr(0, end), tell);
    pending_.erase(0, end + 1);
  }
  if (pending_.size() > kMaxLine) pending_.clear();
  return true;
}

Result<RecipeLine> Child::follow(Signals& signals, const std::function<void(const RecipeLine&, bool)>& tell) {
  for (bool open = true; open;) {
    pollfd fds[2] = {{output_.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    int ready = ::poll(fds, 2, kTick);
    if (ready < 0 && errno != EINTR) return Error::from_errno("poll", errno);
    if (ready == 0 && at_) tell(*at_, true);
    // What the recipe started may hold its output open for longer than it lives itself.
    if (passed_on_ != 0 && has_ended()) break;
    if (ready <= 0) continue;
    if (fds[1].revents != 0) {
      if (auto signal = signals.take()) {
        passed_on_ = *signal;
        ::kill(pid_, SIGTERM);
      }
    }
    if (fds[0].revents != 0) open = read_lines(tell);
  }
  return reap();
}

bool Child::has_ended() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

Result<RecipeLine> Child::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0)
    if (errno != EINTR) return Error::from_errno("wait for the recipe", errno);
  if (passed_on_ != 0) return Error(Errc::unavailable, "the build was interrupted; nothing of it is left", EINTR);
  if (status == 0 && done_) return *std::move(done_);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kWrongWords) return Error(Errc::invalid_argument, "the recipe does not take these words");
  auto where = at_ ? cat(" at stage ", at_->stage, " of ", at_->stages, " (", at_->text, ")") : std::string();
  return Error(Errc::internal, cat("the recipe failed", where));
}

}  // namespace

Result<std::string> recipes_folder() {
  if (const char* named = std::getenv("OPENSANDBOX_RECIPES"); named != nullptr && *named != '\0') {
    if (has_builder(named)) return std::string(named);
    return Error(Errc::not_found, cat("OPENSANDBOX_RECIPES: there is no ", named, "/build"));
  }
  char path[PATH_MAX];
  auto n = ::readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) return Error::from_errno("find our own program", errno);
  auto here = std::string_view(path, static_cast<std::size_t>(n));
  here = here.substr(0, here.rfind('/'));
  // Installed: <prefix>/bin and <prefix>/share; built: <source>/build/<preset>.
  for (auto candidate : {cat(here, "/../share/opensandbox/images"), cat(here, "/../../images")})
    if (has_builder(candidate)) return candidate;
  return Error(Errc::unavailable, "the recipes are not installed beside this program")
      .with_hint("set OPENSANDBOX_RECIPES to the images folder of the source tree");
}

std::vector<std::string> recipe_names(const std::string& folder) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) {
    std::string name = entry->d_name;
    if (!name.starts_with('.') && ::access(cat(folder, "/", name, "/recipe").c_str(), R_OK) == 0) names.push_back(std::move(name));
  }
  ::closedir(dir);
  std::ranges::sort(names);
  return names;
}

std::optional<RecipeLine> parse_recipe_line(std::string_view line) {
  auto words = split(line, ' ');
  if (words.size() == 4 && words[0] == "stage") {
    auto stage = number(words[1]), stages = number(words[2]);
    if (!stage || !stages || *stage > *stages || words[3].empty()) return std::nullopt;
    return RecipeLine{*stage, *stages, std::string(words[3])};
  }
  if (words.size() >= 4 && words[0] == "done" && !words[1].empty()) return RecipeLine{0, 0, std::string(words[1])};
  return std::nullopt;
}

std::string recipe_bar(const RecipeLine& at, std::chrono::seconds spent) {
  constexpr unsigned kWidth = 24;
  // Stages before this one are done; this one is not.
  auto full = at.stages == 0 ? 0 : kWidth * (at.stage - 1) / at.stages;
  return cat("[", std::string(full, '#'), std::string(kWidth - full, '.'), "] ", at.stage, "/", at.stages, " ", at.text, " ",
             format_duration(spent));
}

Result<RecipeLine> run_recipe(const RecipeRun& run, Signals& signals, const std::function<void(const RecipeLine&, bool again)>& tell) {
  TRY(auto child, Child::start(run));
  return child.follow(signals, tell);
}

}  // namespace osb::cli
