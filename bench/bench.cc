// The benchmark: the floor, our paths and the peers on this machine, interleaved in one run.
//
// The floor F is posix_spawn of a static `busybox echo hello`, captured and reaped. Every other row does the same work
// inside something that isolates; its ratio to F is what we promise (docs/promises.md). One sample of each row is taken
// per round, so that a busy moment of the machine hits all of them alike. A row that cannot run here says why.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/utsname.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>

#include "http.h"
#include "process.h"
#include "transfer.h"

namespace bench {
namespace {

// ---- our daemon ----------------------------------------------------------------------------------------------------

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

struct Life {
  double create = 0, endpoint = 0, exec = 0, remove = 0;
};

class Ours {
 public:
  Ours(fs::path build, fs::path work) : program_(build / "opensandbox"), work_(std::move(work)), port_(free_port()), http_(port_) {
    instance_ = "bench-" + std::to_string(::getpid());
    std::ofstream(work_ / "config.yaml") << "server:\n  port: " << port_ << "\n  instance: " << instance_
                                         << "\nstorage:\n  state_dir: " << (work_ / "state").string() << "\n";
    start();
    key_ = "OPEN-SANDBOX-API-KEY: " + first_line(read_file(work_ / "state/api-key")) + "\r\n";
    ::setenv("OPENSANDBOX_HOST", ("unix:///run/opensandbox/" + instance_ + "/api.sock").c_str(), 1);
    running_ = create();
    token_ = door(running_);
  }
  ~Ours() {
    try {
      http_.call("DELETE", "/v1/sandboxes/" + running_, key_, "");
      if (!roomy_.empty()) http_.call("DELETE", "/v1/sandboxes/" + roomy_, key_, "");
      if (!coder_.empty()) http_.call("DELETE", "/v1/sandboxes/" + coder_, key_, "");
    } catch (const std::exception&) {
    }
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    // The launcher ends by itself when nothing is left to hold.
    fs::path run = "/run/opensandbox/" + instance_;
    for (int tries = 0; tries < 100 && fs::exists(run / "launch.sock"); ++tries) ::usleep(50'000);
    std::error_code ignored;
    fs::remove_all(run, ignored);
  }
  Ours(const Ours&) = delete;
  Ours& operator=(const Ours&) = delete;

  const fs::path& program() const { return program_; }

  Life whole_life() {
    Life life;
    auto at = Clock::now();
    std::string id = create();
    life.create = micros_since(at);
    at = Clock::now();
    std::string token = door(id);
    life.endpoint = micros_since(at);
    life.exec = exec(id, token, kSameAsFloor);
    at = Clock::now();
    if (http_.call("DELETE", "/v1/sandboxes/" + id, key_, "").status != 204) throw std::runtime_error("delete failed");
    life.remove = micros_since(at);
    return life;
  }

  double exec_running() { return exec(running_, token_, kSameAsFloor); }
  // What people type: the system's own echo, and a command that needs a shell.
  double exec_plain() { return exec(running_, token_, R"({"command":"echo hello"})"); }
  double exec_shell() { return exec(running_, token_, R"({"command":"echo hello; true"})"); }
  // The usual case: somebody asks for a context while one kernel more than needed is ready. The pause is not counted.
  double python_context() {
    make_coder();
    ::usleep(400'000);
    return context_once();
  }
  // Asked for again at once: forked and set up on request.
  double python_context_forked() {
    make_coder();
    context_once();
    return context_once();
  }
  double python_code() {
    make_coder();
    auto at = Clock::now();
    Reply reply = http_.call("POST", door_path(coder_) + "/code", coder_token_, R"({"code":"1 + 1","context":{"language":"python"}})");
    if (reply.body.find("\"text\":\"2\"") == std::string::npos) throw std::runtime_error("code failed: " + reply.body.substr(0, 200));
    return micros_since(at);
  }
  double stream_running() { return stream(running_, token_); }

  // In a sandbox with room for it, made when first asked for.
  Transfer& transfer() {
    if (transfer_) return *transfer_;
    roomy_ = create(R"("cpu":"2","memory":"4Gi","disk":"3Gi")");
    transfer_ = std::make_unique<Transfer>(work_, port_, door_path(roomy_), door(roomy_));
    return *transfer_;
  }

 private:
  void start() {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, (work_ / "serve.log").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    std::string config = (work_ / "config.yaml").string(), program = program_.string();
    std::array<char*, 5> argv{program.data(), const_cast<char*>("serve"), const_cast<char*>("--config"), config.data(), nullptr};
    if (::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) die("cannot start " + program);
    posix_spawn_file_actions_destroy(&actions);
    for (int tries = 0; !http_.reachable(); ++tries) {
      if (tries == 300 || ::waitpid(pid_, nullptr, WNOHANG) == pid_) die("serve does not answer:\n" + read_file(work_ / "serve.log"));
      ::usleep(50'000);
    }
  }
  std::string create(const std::string& limits = R"("cpu":"1","memory":"256Mi")") {
    std::string body = R"({"image":{"uri":"host"},"timeout":600,"entrypoint":["tail","-f","/dev/null"],"resourceLimits":{)" + limits + "}}";
    Reply reply = http_.call("POST", "/v1/sandboxes", key_, body);
    if (reply.status != 202) throw std::runtime_error("create failed: " + std::to_string(reply.status) + " " + reply.body.substr(0, 300));
    return json_text(reply.body, "id");
  }
  static std::string door_path(const std::string& id) { return "/sandboxes/" + id + "/proxy/44772"; }
  std::string door(const std::string& id) {
    Reply reply = http_.call("GET", "/v1/sandboxes/" + id + "/endpoints/44772", key_, "");
    return "X-EXECD-ACCESS-TOKEN: " + json_text(reply.body, "X-EXECD-ACCESS-TOKEN") + "\r\n";
  }
  static constexpr const char* kSameAsFloor = R"({"command":"/bin/busybox echo hello"})";

  // `POST /command`, as every SDK does it: one request on the kept connection, events to the end of the stream.
  double exec(const std::string& id, const std::string& token, const char* body) {
    auto at = Clock::now();
    Reply reply = http_.call("POST", door_path(id) + "/command", token, body);
    if (reply.status != 200 || reply.body.find("hello") == std::string::npos || reply.body.find("execution_complete") == std::string::npos)
      throw std::runtime_error("command failed: " + reply.body.substr(0, 200));
    return micros_since(at);
  }
  // Our own exec, as `opensandbox exec` does it: connect, upgrade, output, exit status.
  double stream(const std::string& id, const std::string& token) {
    auto at = Clock::now();
    Http direct(port_);
    int status = direct.upgrade(door_path(id) + "/osb/v1/exec", token, R"({"argv":["/bin/busybox","echo","hello"],"stdin":false})");
    if (status != 101) throw std::runtime_error("exec failed: " + std::to_string(status));
    std::string out;
    for (;;) {
      std::string frame = direct.take(5);
      auto byte = [&](std::size_t index) { return static_cast<std::size_t>(static_cast<unsigned char>(frame[index])); };
      std::string payload = direct.take(byte(1) << 24 | byte(2) << 16 | byte(3) << 8 | byte(4));
      if (frame[0] == 10) out += payload;
      if (frame[0] != 12) continue;
      if (out != "hello\n" || payload.find("\"exit_code\":0") == std::string::npos) throw std::runtime_error("exec: " + payload);
      return micros_since(at);
    }
  }

  double context_once() {
    auto at = Clock::now();
    Reply reply = http_.call("POST", door_path(coder_) + "/code/context", coder_token_, R"({"language":"python"})");
    if (reply.status != 200) throw std::runtime_error("no context: " + reply.body.substr(0, 200));
    double took = micros_since(at);
    http_.call("DELETE", door_path(coder_) + "/code/contexts/" + json_text(reply.body, "id"), coder_token_, "");
    return took;
  }
  void make_coder() {
    if (!coder_.empty()) return;
    coder_ = create();
    coder_token_ = door(coder_);
    context_once();
  }

  fs::path program_, work_;
  std::uint16_t port_;
  Http http_;
  std::string instance_, key_, running_, token_, roomy_;
  std::unique_ptr<Transfer> transfer_;
  std::string coder_, coder_token_;  // a sandbox with a Python kernel
  pid_t pid_ = -1;
};

// ---- peers ---------------------------------------------------------------------------------------------------------

// A bundle for runc and crun: busybox as the whole root, no terminal, read-only.
void make_bundle(const fs::path& bundle, const std::string& runtime) {
  fs::create_directories(bundle / "rootfs/bin");
  for (const char* name : {"dev", "proc", "sys", "tmp"}) fs::create_directories(bundle / "rootfs" / name);
  fs::copy_file("/bin/busybox", bundle / "rootfs/bin/busybox", fs::copy_options::overwrite_existing);
  capture({"sh", "-c", "cd '" + bundle.string() + "' && rm -f config.json && " + runtime + " spec"});
  std::string config = read_file(bundle / "config.json");
  auto swap = [&](const std::string& from, const std::string& to) {
    if (auto at = config.find(from); at != std::string::npos) config.replace(at, from.size(), to);
  };
  swap("\"terminal\": true", "\"terminal\": false");
  auto args = config.find("\"args\"");
  if (args == std::string::npos) throw std::runtime_error(runtime + " spec made no config.json");
  auto open = config.find('[', args), close = config.find(']', args);
  config.replace(open, close - open + 1, R"(["/bin/busybox", "echo", "hello"])");
  std::ofstream(bundle / "config.json") << config;
}

// Samples taken in a forked child, which may live in a mount namespace of its own.
class Away {
 public:
  Away(std::function<void()> prepare, std::function<double()> once) {
    int asks[2], answers[2];
    if (::pipe2(asks, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0) die("pipe2 failed");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(asks[1]);
      prepare();
      for (char go; ::read(asks[0], &go, 1) == 1;) {
        double took = -1;
        try {
          took = once();
        } catch (const std::exception&) {
        }
        if (::write(answers[1], &took, sizeof took) != sizeof took) break;
      }
      ::_exit(0);
    }
    ::close(asks[0]);
    ::close(answers[1]);
    ask_ = asks[1];
    answer_ = answers[0];
  }
  ~Away() {
    ::close(ask_);
    ::close(answer_);
    ::kill(pid_, SIGKILL);  // a later child has copies of our ends, so that closing them says nothing
    ::waitpid(pid_, nullptr, 0);
  }
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

  double once() {
    double took = -1;
    if (::write(ask_, "g", 1) != 1 || ::read(answer_, &took, sizeof took) != sizeof took || took < 0)
      throw std::runtime_error("it did not print hello");
    return took;
  }

 private:
  pid_t pid_ = -1;
  int ask_ = -1, answer_ = -1;
};

// crun refuses a host with both cgroup versions unless the second is out of sight.
void hide_cgroup2() {
  if (::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0)
    ::umount2("/sys/fs/cgroup/unified", MNT_DETACH);
}

// ---- rows ----------------------------------------------------------------------------------------------------------

struct Row {
  std::string name;
  std::function<double()> once;  // microseconds; empty: filled by another row
  int every = 1;                 // sampled in every n-th round
  std::vector<double> samples{};
  std::string unusable{};

  double at(double quantile) const {
    if (samples.empty()) return NAN;
    auto sorted = samples;
    std::ranges::sort(sorted);
    return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(quantile * static_cast<double>(sorted.size())))];
  }
};

struct Options {
  bool quick = false, json = false;
  int rounds = 500;
  double seconds = 240;
};

class Bench {
 public:
  Bench(Options options, const fs::path& build, fs::path work) : options_(options), work_(std::move(work)), ours_(build, work_) {
    list_rows();
  }

  void run() {
    for (auto& row : rows_) try_out(row);
    auto start = Clock::now();
    for (int round = 0; round < options_.rounds && micros_since(start) < options_.seconds * 1e6; ++round) {
      for (auto& row : rows_)
        if (row.once && row.unusable.empty() && round % row.every == 0) sample(row);
    }
  }

  void print() const { options_.json ? print_json() : print_table(); }

 private:
  void list_rows() {
    rows_.reserve(32);
    add("floor: busybox echo", [] { return time_hello({"/bin/busybox", "echo", "hello"}); });
    add("bash -c 'echo hello', bare", [] { return time_hello({"bash", "-c", "echo hello"}); });
    add("REST create+exec+delete", [this] { return life(); });
    for (const char* part : {"  create", "  endpoint lookup (not in the sum)", "  exec", "  delete"}) add(part, nullptr);
    add("REST exec, running sandbox", [this] { return ours_.exec_running(); });
    add("  'echo hello', no shell needed", [this] { return ours_.exec_plain(); });
    add("  'echo hello; true', with bash", [this] { return ours_.exec_shell(); });
    add("  exec stream on a new connection", [this] { return ours_.stream_running(); });
    add("python context, a kernel is ready", [this] { return ours_.python_context(); }, 10);
    add("  forked on request", [this] { return ours_.python_context_forked(); }, 10);
    add("  1 + 1 in a context", [this] { return ours_.python_code(); }, 10);
    std::string program = ours_.program().string();
    add("opensandbox run (daemon running)", [=] { return time_hello({program, "run", "--", "/bin/busybox", "echo", "hello"}); }, 2);
    add(
        "opensandbox run (private daemon)",
        [=] { return time_hello({"env", "-u", "OPENSANDBOX_HOST", program, "run", "--", "/bin/busybox", "echo", "hello"}); }, 10);
    add("bwrap --unshare-all", [] {
      return time_hello(
          {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "/bin/busybox", "echo", "hello"});
    });
    add_oci("crun");
    add_oci("runc");
    add_docker();
    add("1 GiB, plain copy by unix socket", [this] { return ours_.transfer().plain(); }, 100);
    add("1 GiB into a sandbox, REST", [this] { return ours_.transfer().upload(); }, 100);
    add("1 GiB out of a sandbox, REST", [this] { return ours_.transfer().download(); }, 100);
  }
  void add(std::string name, std::function<double()> once, int every = 1) { rows_.push_back({std::move(name), std::move(once), every}); }

  double life() {
    Life life = ours_.whole_life();
    auto part = std::ranges::find(rows_, "  create", &Row::name);
    for (double took : {life.create, life.endpoint, life.exec, life.remove}) (part++)->samples.push_back(took);
    return life.create + life.exec + life.remove;
  }

  void add_oci(const std::string& runtime) {
    add(runtime + " run", nullptr, 2);
    if (!on_path(runtime)) return void(rows_.back().unusable = "not installed");
    fs::path bundle = work_ / runtime;
    try {
      make_bundle(bundle, runtime);
    } catch (const std::exception& error) {
      return void(rows_.back().unusable = error.what());
    }
    auto once = [=, turn = 0]() mutable {
      return time_hello({runtime, "run", "-b", bundle.string(),
                         "osb-bench-" + runtime + "-" + std::to_string(::getpid()) + "-" + std::to_string(turn++)});
    };
    aways_.push_back(std::make_unique<Away>(runtime == "crun" ? hide_cgroup2 : [] {}, once));
    rows_.back().once = [away = aways_.back().get()] { return away->once(); };
  }

  void add_docker() {
    add("docker run --rm --network none", nullptr, 25);
    Row& row = rows_.back();
    if (!on_path("docker")) return void(row.unusable = "not installed");
    if (!capture({"docker", "info"}, true).ok()) return void(row.unusable = "its daemon is not running");
    std::string image = "osb-bench-busybox";
    if (!capture({"sh", "-c", "tar -C / -ch bin/busybox | docker import - " + image}, true).ok())
      return void(row.unusable = "cannot import an image");
    row.once = [=] { return time_hello({"docker", "run", "--rm", "--network", "none", image, "/bin/busybox", "echo", "hello"}); };
  }

  // A few samples that do not count: the row works, and its files are in memory.
  void try_out(Row& row) {
    if (!row.once || !row.unusable.empty()) return;
    try {
      for (int turn = 0; turn < (row.every > 5 ? 1 : 10); ++turn) row.once();
    } catch (const std::exception& error) {
      row.unusable = error.what();
    }
    for (auto& other : rows_) other.samples.clear();
  }
  static void sample(Row& row) {
    try {
      double took = row.once();
      row.samples.push_back(took);
    } catch (const std::exception& error) {
      row.unusable = error.what();
    }
  }

  const Row& row(const std::string& name) const { return *std::ranges::find(rows_, name, &Row::name); }
  double ratio(const Row& row, double quantile) const { return row.at(quantile) / rows_[0].at(0.5); }

  static std::string machine() {
    utsname name{};
    ::uname(&name);
    std::string model = "unknown cpu", line;
    for (std::ifstream info("/proc/cpuinfo"); std::getline(info, line);)
      if (line.starts_with("model name")) model = line.substr(line.find(':') + 2);
    return std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) + " x " + model + ", Linux " + name.release + ", load " +
           first_line(read_file("/proc/loadavg"));
  }
  // Ours crosses four processes, the floor one: whoever else wants the processors is felt four times.
  static bool busy() {
    double load[1] = {0};
    return ::getloadavg(load, 1) == 1 && load[0] > 1.5 * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  }
  std::string versions() const {
    std::string out = first_line(capture({ours_.program().string(), "version"}).text);
    for (const char* peer : {"bwrap", "crun", "runc"})
      if (on_path(peer)) out += ", " + first_line(capture({peer, "--version"}).text);
    return out;
  }

  struct Promise {
    std::string text;
    bool kept;
  };
  std::vector<Promise> promises() const {
    char text[160];
    std::vector<Promise> out;
    double cold = ratio(row("REST create+exec+delete"), 0.5), exec = ratio(row("REST exec, running sandbox"), 0.5);
    std::snprintf(text, sizeof text, "cold create+exec+delete p50 = %.2f F (promised: at most 7)", cold);
    out.push_back({text, cold <= 7});
    std::snprintf(text, sizeof text, "exec in a running sandbox p50 = %.2f F (promised: at most 2)", exec);
    out.push_back({text, exec <= 2});
    double plain = row("1 GiB, plain copy by unix socket").at(0.5);
    for (const char* name : {"1 GiB into a sandbox, REST", "1 GiB out of a sandbox, REST"}) {
      double share = plain / row(name).at(0.5);
      std::snprintf(text, sizeof text, "%s: %.0f %% of the speed of a plain copy (promised: at least 50 %%)", name, 100 * share);
      out.push_back({text, share >= 0.5});
    }
    const Row& bwrap = row("bwrap --unshare-all");
    if (bwrap.samples.empty()) return out;
    std::snprintf(text, sizeof text, "cold p50 %.2f F is ahead of bwrap p50 %.2f F", cold, ratio(bwrap, 0.5));
    out.push_back({text, cold < ratio(bwrap, 0.5)});
    return out;
  }

  void print_table() const {
    std::printf("%s\n%s\n\n%-38s %8s %8s %8s %7s %7s %6s\n", machine().c_str(), versions().c_str(), "milliseconds", "p50", "p99", "max",
                "p50/F", "p99/F", "n");
    for (const auto& row : rows_) {
      if (row.samples.empty()) {
        std::printf("%-38s %s\n", row.name.c_str(), row.unusable.empty() ? "no sample" : row.unusable.c_str());
        continue;
      }
      std::printf("%-38s %8.3f %8.3f %8.3f %7.2f %7.2f %6zu\n", row.name.c_str(), row.at(0.5) / 1e3, row.at(0.99) / 1e3, row.at(1) / 1e3,
                  ratio(row, 0.5), ratio(row, 0.99), row.samples.size());
    }
    std::printf("\n");
    if (busy()) std::printf("This machine is busy: the ratios mean little. Stop what else runs and try again.\n");
    for (const auto& promise : promises()) std::printf("%s: %s\n", promise.kept ? "kept  " : "MISSED", promise.text.c_str());
  }

  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out + "\"";
  }
  void print_json() const {
    std::printf("{\"machine\": %s,\n \"versions\": %s,\n \"rows\": [\n", quoted(machine()).c_str(), quoted(versions()).c_str());
    for (std::size_t index = 0; index < rows_.size(); ++index) {
      const auto& row = rows_[index];
      std::printf("  {\"name\": %s, ", quoted(row.name).c_str());
      if (row.samples.empty())
        std::printf("\"unusable\": %s}", quoted(row.unusable).c_str());
      else
        std::printf("\"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"p50_floor\": %.3f, \"p99_floor\": %.3f, \"samples\": %zu}",
                    row.at(0.5), row.at(0.99), row.at(1), ratio(row, 0.5), ratio(row, 0.99), row.samples.size());
      std::printf("%s\n", index + 1 < rows_.size() ? "," : "");
    }
    std::printf(" ],\n \"promises\": [");
    auto list = promises();
    for (std::size_t index = 0; index < list.size(); ++index)
      std::printf("%s\n  {\"text\": %s, \"kept\": %s}", index ? "," : "", quoted(list[index].text).c_str(),
                  list[index].kept ? "true" : "false");
    std::printf("\n ]}\n");
  }

  Options options_;
  fs::path work_;
  Ours ours_;
  std::vector<std::unique_ptr<Away>> aways_;
  std::vector<Row> rows_;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int index = 1; index < argc; ++index) {
    std::string word = argv[index];
    if (word == "--quick")
      options.quick = true, options.rounds = 120, options.seconds = 35;
    else if (word == "--json")
      options.json = true;
    else if (word == "--rounds" && index + 1 < argc)
      options.rounds = std::max(1, std::atoi(argv[++index]));
    else
      die("unknown option '" + word + "' (--quick, --json, --rounds N)");
  }
  return options;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  Options options = parse(argc, argv);
  const char* build = std::getenv("OSB_BUILD_DIR");
  if (!build) die("start it with ./dev bench");
  if (::geteuid() != 0) die("needs root: sandboxes are made by a privileged launcher");
  std::string folder = "/tmp/osb-bench-XXXXXX";
  if (!::mkdtemp(folder.data())) die("no temporary directory");
  int status = 0;
  try {
    Bench bench(options, build, folder);
    bench.run();
    bench.print();
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << "\n";
    status = 1;
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return status;
}
