#include "peers.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <stdexcept>

namespace bench {
namespace {

constexpr const char* kGroup = "peers";

// A bundle for the OCI runtimes: busybox as the whole root, no terminal, no network but lo, read-only.
void make_bundle(const fs::path& bundle, const std::string& runtime) {
  fs::create_directories(bundle / "rootfs/bin");
  for (const char* name : {"dev", "proc", "sys", "tmp"}) fs::create_directories(bundle / "rootfs" / name);
  fs::copy_file("/bin/busybox", bundle / "rootfs/bin/busybox", fs::copy_options::overwrite_existing);
  capture({"sh", "-c", "cd '" + bundle.string() + "' && rm -f config.json && " + runtime + " spec"}, true);
  std::string config = read_file(bundle / "config.json");
  if (auto at = config.find("\"terminal\": true"); at != std::string::npos) config.replace(at, 16, "\"terminal\": false");
  auto args = config.find("\"args\"");
  if (args == std::string::npos) throw std::runtime_error(runtime + " spec made no config.json");
  auto open = config.find('[', args), close = config.find(']', args);
  config.replace(open, close - open + 1, R"(["/bin/busybox", "echo", "hello"])");
  write_file(bundle / "config.json", config);
}

// crun refuses a host with both cgroup versions unless the second is out of sight.
void hide_cgroup2() {
  if (::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0)
    ::umount2("/sys/fs/cgroup/unified", MNT_DETACH);
}

}  // namespace

void Peers::add_rows() {
  if (!context_.options.wants(kGroup)) return;
  Row& bwrap = context_.rows.add(kGroup, kBwrap, [] {
    return time_hello(
        {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "/bin/busybox", "echo", "hello"});
  });
  bwrap.leaves_network = true;
  if (!on_path("bwrap")) bwrap.unusable = "not installed";
  add_oci("crun", {}, 2);
  add_oci("runc", {}, 2);
  add_oci("runsc", {"--rootless=false", "--network=none"}, 5);
  docker_->add_rows(context_.rows);
  add_server();
}

void Peers::add_oci(const std::string& runtime, const Words& options, int every) {
  Row& row = context_.rows.add(kGroup, runtime + " run", nullptr, every);
  row.leaves_network = true;
  if (!on_path(runtime)) return void(row.unusable = "not installed");
  fs::path bundle = context_.work / runtime;
  try {
    make_bundle(bundle, runtime);
  } catch (const std::exception& error) {
    return void(row.unusable = error.what());
  }
  Words lead = {runtime, "--root", (context_.work / (runtime + "-state")).string()};
  lead.insert(lead.end(), options.begin(), options.end());
  auto words_of = [lead, bundle, runtime](const Words& extra, const std::string& turn) {
    Words words = lead;
    words.insert(words.end(), extra.begin(), extra.end());
    words.insert(words.end(), {"run", "--bundle", bundle.string(), "osb-bench-" + runtime + "-" + std::to_string(::getpid()) + "-" + turn});
    return words;
  };
  Words platform;
  if (runtime == "runsc") {
    // The last one that works: systrap is quicker, but not in every build, and kvm not on every machine.
    for (const char* name : {"ptrace", "systrap"})
      if (Words words = {std::string("--platform=") + name}; capture(words_of(words, name), true).ok()) {
        platform = words;
        row.note = std::string("platform ") + name;
      }
  }
  auto once = [words_of, platform, turn = 0]() mutable { return time_hello(words_of(platform, std::to_string(turn++))); };
  helpers_.push_back(std::make_unique<Helper>(runtime == "crun" ? hide_cgroup2 : [] {}, once));
  row.once = [helper = helpers_.back().get()] { return helper->sample(); };
}

// A server we know nothing about but its address: what it takes until it has said hello and the sandbox is deleted.
void Peers::add_server() {
  const auto& options = context_.options;
  if (options.url.empty()) return;
  std::string rest = options.url;
  Row& row = context_.rows.add(kGroup, "server at " + rest + ": create+run+delete", nullptr, 3);
  if (rest.starts_with("https://")) return void(row.unusable = "https is not spoken here; put a plain door before it");
  if (rest.starts_with("http://")) rest = rest.substr(7);
  while (rest.ends_with('/')) rest.pop_back();
  auto slash = rest.find('/');
  std::string prefix = slash == std::string::npos ? "" : rest.substr(slash);
  server_ = std::make_unique<Client>(Server{.address = Address::parse(rest.substr(0, slash)),
                                            .key_header = Server::key_line(options.key),
                                            .prefix = prefix.ends_with("/v1") ? prefix : prefix + "/v1",
                                            .image = options.image.empty() ? "busybox" : options.image});
  row.once = [this] { return foreign_life(*server_); };
}

}  // namespace bench
