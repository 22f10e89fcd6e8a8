#include "helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "interrupt.h"

extern char** environ;

namespace bench {
namespace {

constexpr int kSampleMs = 60'000;

void answer_lines(int in, int out, const std::function<double()>& once) {
  for (char go; ::read(in, &go, 1) == 1;) {
    std::string text;
    try {
      text = std::to_string(once());
    } catch (const std::exception& error) {
      text = first_line(error.what());
    }
    text += '\n';
    if (::write(out, text.data(), text.size()) < 0) return;
  }
}

}  // namespace

void Helper::open_pipes(int ask[2], int answer[2]) {
  if (::pipe2(ask, O_CLOEXEC) != 0 || ::pipe2(answer, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  ask_ = ask[1];
  answer_ = answer[0];
}

Helper::Helper(const Words& words) {
  int ask[2], answer[2];
  open_pipes(ask, answer);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ask[0], 0);
  posix_spawn_file_actions_adddup2(&actions, answer[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  if (::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ask[0]);
  ::close(answer[1]);
}

Helper::Helper(const std::function<void()>& prepare, const std::function<double()>& once) {
  int ask[2], answer[2];
  open_pipes(ask, answer);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(ask[1]);
    ::signal(SIGINT, SIG_IGN);  // the one that asks ends us
    try {
      prepare();
      answer_lines(ask[0], answer[1], once);
    } catch (...) {
      // Past this it would clean up what is its parent's.
    }
    ::_exit(0);
  }
  ::close(ask[0]);
  ::close(answer[1]);
}

Helper::~Helper() {
  ::close(ask_);
  ::close(answer_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);  // a later child may have copies of our ends, so that closing them says nothing
  ::waitpid(pid_, nullptr, 0);
}

double Helper::sample() {
  if (pid_ < 0) throw std::runtime_error("it cannot be started");
  if (::write(ask_, "\n", 1) != 1) throw std::runtime_error("it ended");
  std::string text;
  while (text.find('\n') == std::string::npos) {
    pollfd waits{answer_, POLLIN, 0};
    char chunk[512];
    ssize_t n = ::poll(&waits, 1, kSampleMs) > 0 ? ::read(answer_, chunk, sizeof chunk) : -1;
    check_interrupted();
    if (n <= 0) throw std::runtime_error(n == 0 ? "it ended" : "it took more than a minute");
    text.append(chunk, static_cast<std::size_t>(n));
  }
  char* end = nullptr;
  double took = std::strtod(text.c_str(), &end);
  if (*end != '\n') throw std::runtime_error(first_line(text));
  return took;
}

}  // namespace bench
