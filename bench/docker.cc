#include "docker.h"

#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <stdexcept>

#include "interrupt.h"

namespace bench {
namespace {

constexpr const char* kGroup = "peers";
constexpr const char* kImage = "osb-bench-busybox";
constexpr const char* kLabel = "osb-bench";

// What a careful operator asks Docker for; still less than a sandbox of ours has.
const Words kHardened = {
    "--network", "none",     "--cap-drop", "ALL",     "--read-only", "--security-opt", "no-new-privileges", "--pids-limit",
    "64",        "--memory", "256m",       "--label", kLabel};

std::string create_request() {
  return std::string(R"({"Image":")") + kImage + R"(","Cmd":["/bin/busybox","echo","hello"],"Labels":{")" + kLabel +
         R"(":"1"},"NetworkDisabled":true,"HostConfig":{"NetworkMode":"none","CapDrop":["ALL"],"ReadonlyRootfs":true,)"
         R"("SecurityOpt":["no-new-privileges"],"PidsLimit":64,"Memory":268435456}})";
}

std::string id_of(std::string_view body) {
  auto at = body.find("\"Id\":\"");
  return at == std::string_view::npos ? "" : std::string(body.substr(at + 6, 64));
}

}  // namespace

Docker::Docker(Context& context) : context_(context) {
  if (!on_path("docker")) {
    why_not_ = "not installed";
    return;
  }
  try {
    if (!capture(command({"info"}), true).ok()) start_daemon();
    if (usable()) import_image();
  } catch (...) {
    stop_daemon();
    throw;
  }
}

Docker::~Docker() {
  if (usable()) {
    remove_containers();
    if (imported_) capture(command({"rmi", "-f", kImage}), true);
  }
  stop_daemon();
}

Words Docker::command(const Words& words) const {
  Words out = {"docker", "-H", "unix://" + socket_};
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

void Docker::start_daemon() {
  if (!context_.options.start_docker) {
    why_not_ = on_path("dockerd") ? "its daemon is not running (--start-docker starts it for the run)" : "its daemon is not running";
    return;
  }
  if (!on_path("dockerd")) return void(why_not_ = "dockerd is not installed");
  folder_ = context_.work / "docker";
  fs::create_directories(folder_);
  socket_ = (folder_ / "docker.sock").string();
  pid_ = start_in_background(
      {"dockerd", "--data-root", (folder_ / "data").string(), "--exec-root", (folder_ / "exec").string(), "--pidfile",
       (folder_ / "pid").string(), "-H", "unix://" + socket_, "--bridge", "none", "--iptables=false", "--ip6tables=false"},
      folder_ / "log");
  auto start = Clock::now();
  while (!capture(command({"info"}), true).ok() || !fs::exists(socket_)) {
    if (has_ended(pid_) || seconds_since(start) > 60) {
      std::string log = read_file(folder_ / "log");
      why_not_ = "dockerd does not start: " + log.substr(log.size() > 300 ? log.size() - 300 : 0);
      return stop_daemon();
    }
    pause_ms(100);
  }
}

void Docker::stop_daemon() {
  if (pid_ <= 0) return;
  end_process(pid_, 30);
  pid_ = -1;
  // A daemon that was killed leaves mounts; the folder must be free of them before it is removed.
  std::string mounts = read_file("/proc/self/mounts");
  for (auto at = mounts.rfind(folder_.string()); at != std::string::npos && at > 0; at = mounts.rfind(folder_.string(), at - 1))
    ::umount2(mounts.substr(at, mounts.find(' ', at) - at).c_str(), MNT_DETACH);
}

void Docker::import_image() {
  std::string list = "docker -H unix://" + socket_;
  if (capture(command({"image", "inspect", kImage}), true).ok()) return;
  Output out = capture({"sh", "-c", "tar -C / -ch bin/busybox | " + list + " import - " + kImage}, true);
  if (!out.ok()) return void(why_not_ = "cannot import an image: " + first_line(out.text));
  imported_ = true;
}

void Docker::remove_containers() {
  std::string list = "docker -H unix://" + socket_;
  capture({"sh", "-c", list + " ps -aq --filter label=" + kLabel + " | xargs -r " + list + " rm -f"}, true);
}

double Docker::run_by_command(const Words& options) {
  Words words = command({"run", "--rm"});
  words.insert(words.end(), options.begin(), options.end());
  for (const char* word : {kImage, "/bin/busybox", "echo", "hello"}) words.push_back(word);
  return time_hello(words);
}

double Docker::run_by_api() {
  Http http(Address::unix_socket(socket_));
  auto at = Clock::now();
  auto call = [&](const std::string& method, const std::string& path, const std::string& body, int wanted) {
    Reply reply = http.call(method, path, body.empty() && method == "POST" ? "Content-Length: 0\r\n" : "", body);
    if (reply.status != wanted)
      throw std::runtime_error(path.substr(0, 20) + ": " + std::to_string(reply.status) + " " + reply.body.substr(0, 200));
    return reply;
  };
  std::string id = id_of(call("POST", "/containers/create", create_request(), 201).body);
  call("POST", "/containers/" + id + "/start", "", 204);
  call("POST", "/containers/" + id + "/wait", "", 200);
  call("DELETE", "/containers/" + id, "", 204);
  return micros_since(at);
}

void Docker::add_rows(Rows& rows) {
  struct {
    const char* name;
    std::function<double()> once;
  } list[] = {{"docker run --rm --network none", [this] { return run_by_command({"--network", "none", "--label", kLabel}); }},
              {"docker run --rm, hardened", [this] { return run_by_command(kHardened); }},
              {"Docker API: create+start+wait+rm, hardened", [this] { return run_by_api(); }}};
  for (auto& [name, once] : list) {
    Row& row = rows.add(kGroup, name, std::move(once), 10);
    row.leaves_network = true;
    row.unusable = why_not_;
  }
}

LoadSettings Docker::lives(std::size_t clients, double seconds) const {
  Server server{.address = Address::unix_socket(socket_)};
  std::string body = create_request();
  std::string create = request_head(server, "POST", "/containers/create") +
                       "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  auto simple = [&](const std::string& method, const std::string& tail, int wanted) {
    std::string rest = tail + " HTTP/1.1\r\nHost: localhost\r\n" + (method == "POST" ? "Content-Length: 0\r\n" : "") + "\r\n";
    return Step{
        [lead = method + " /containers/", rest](std::string& out, const Memo& memo) { out.append(lead).append(memo.id).append(rest); },
        [wanted](int status, std::string_view, Memo&) { return status == wanted; }};
  };
  Step first{[create](std::string& out, const Memo&) { out += create; },
             [](int status, std::string_view answer, Memo& memo) {
               memo.id = id_of(answer);
               return status == 201;
             }};
  return {.address = server.address,
          .steps = {first, simple("POST", "/start", 204), simple("POST", "/wait", 200), simple("DELETE", "", 204)},
          .repair = simple("DELETE", "?force=1", 204),
          .clients = clients,
          .seconds = seconds};
}

}  // namespace bench
