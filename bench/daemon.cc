#include "daemon.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <ranges>
#include <stdexcept>

#include "interrupt.h"
#include "machine.h"

namespace bench {
namespace {

constexpr double kStartSeconds = 20, kStopSeconds = 15;
constexpr double kLauncherSeconds = 60;  // ten thousand sandboxes take their time

std::uint16_t free_port() {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    die("no free port");
  ::close(fd);
  return ntohs(address.sin_port);
}

// The last resort: ends what runs in the groups of an instance, and removes them.
void take_down_groups(const std::string& name) {
  std::error_code ignored;
  for (const char* root : {"/sys/fs/cgroup/unified/", "/sys/fs/cgroup/"})
    if (fs::path group = root + name; fs::exists(group / "cgroup.kill", ignored)) std::ofstream(group / "cgroup.kill") << "1";
  ::usleep(200'000);
  std::vector<fs::path> groups;
  for (const auto& hierarchy : names_in("/sys/fs/cgroup")) {
    fs::path at = "/sys/fs/cgroup/" + hierarchy, top = hierarchy == name ? at : at / name;
    if (!fs::is_directory(top, ignored)) continue;
    groups.push_back(top);
    for (const auto& entry : names_in(top))
      if (fs::is_directory(top / entry, ignored)) groups.push_back(top / entry);
  }
  for (const auto& group : groups | std::views::reverse) ::rmdir(group.c_str());
}

}  // namespace

Daemon::Daemon(const fs::path& build, const fs::path& work, const std::string& name, const std::string& extra)
    : program_(build / "opensandbox"),
      instance_("bench-" + name + "-" + std::to_string(::getpid())),
      folder_(work / name),
      run_("/run/opensandbox/" + instance_),
      port_(free_port()) {
  fs::create_directories(folder_);
  // Any free port for the session API: daemons run side by side.
  write_file(folder_ / "config.yaml", "sessions:\n  port: 0\nserver:\n  port: " + std::to_string(port_) + "\n  instance: " + instance_ +
                                          "\nstorage:\n  state_dir: " + (folder_ / "state").string() + "\n" + extra);
}

Daemon::~Daemon() {
  try {
    if (pid_ > 0 && !has_ended(pid_)) Client(by_socket()).remove_all();
  } catch (...) {
    // It is not answering: the launcher goes the hard way below.
  }
  stop();
  end_launcher();
  std::error_code ignored;
  fs::remove_all(run_, ignored);
  fs::remove_all(folder_, ignored);
}

double Daemon::start() {
  auto at = Clock::now();
  pid_ = start_in_background({program_, "serve", "--config", (folder_ / "config.yaml").string()}, folder_ / "serve.log");
  for (Http http(Address::loopback(port_)); !http.reachable(); pause_ms(0.5)) {
    if (bool ended = has_ended(pid_); ended || seconds_since(at) > kStartSeconds) {
      if (ended) pid_ = -1;
      throw std::runtime_error("serve does not answer: " + log());
    }
  }
  double took = micros_since(at);
  key_ = first_line(read_file(folder_ / "state/api-key"));
  return took;
}

void Daemon::stop() {
  end_process(pid_, kStopSeconds);
  pid_ = -1;
}

// The launcher ends by itself when nobody is served and nothing is left to hold.
void Daemon::end_launcher() {
  int absent = 0;  // it may be seen in the middle of becoming a background process: that nobody is there counts when seen twice
  for (auto start = Clock::now(); seconds_since(start) < kLauncherSeconds; ::usleep(5'000)) {
    absent = launcher() < 0 ? absent + 1 : 0;
    if (absent == 2) return;
  }
  std::cerr << "bench: the launcher of " << instance_ << " did not end by itself and was killed; see opensandbox doctor --leaks\n";
  if (pid_t left = launcher(); left > 0) ::kill(left, SIGKILL);
  take_down_groups("opensandbox-" + instance_);
}

std::string Daemon::sessions() const { return first_line(read_file(run_ / "sessions.address")); }

Server Daemon::tcp() const { return {.address = Address::loopback(port_), .key_header = Server::key_line(key_)}; }
Server Daemon::by_socket() const { return {.address = Address::unix_socket(socket()), .key_header = Server::key_line(key_)}; }
std::string Daemon::log() const {
  std::string text = read_file(folder_ / "serve.log");
  return text.size() > 2000 ? text.substr(text.size() - 2000) : text;
}

// Its children may still look like it for a moment, or for good: the launcher is the one whose parent does not.
pid_t Daemon::launcher() const {
  auto looks = [&](const std::string& pid) {
    std::string words = read_file("/proc/" + pid + "/cmdline");
    return words.substr(0, words.find('\0')).ends_with("opensandbox-launch") && words.find('\0' + instance_ + '\0') != std::string::npos;
  };
  for (const auto& pid : process_ids())
    if (looks(pid) && !looks(std::to_string(look_at(std::stoi(pid)).parent))) return std::stoi(pid);
  return -1;
}

bool Daemon::accepts(const fs::path& build, const fs::path& work, const std::string& extra, std::string* why) {
  fs::path file = work / "accepts.yaml";
  write_file(file, extra);
  Output out = capture({(build / "opensandbox").string(), "config", "check", "--config", file.string()}, true);
  if (!out.ok() && why) {
    std::string said = first_line(out.text);
    if (auto at = said.find(".yaml:"); at != std::string::npos) said = said.substr(said.find(' ', at) + 1);
    *why = "this build does not take its configuration: " + said.substr(0, said.find(';'));
  }
  return out.ok();
}

}  // namespace bench
