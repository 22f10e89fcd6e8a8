#include "lifecycle.h"

#include <array>
#include <cstdlib>
#include <stdexcept>

#include "interrupt.h"

namespace bench {
namespace {

constexpr const char* kGroup = "lifecycle";

// Enough of them, far enough apart, for a pool to see the demand and to have answered it.
void prime(Client& client) {
  for (int turn = 0; turn < 12; ++turn) {
    client.whole_life();
    pause_ms(15);
  }
  pause_ms(150);
}

}  // namespace

void Lifecycle::add_rows() {
  Rows& rows = context_.rows;
  rows.add("floor", kFloorName, [] { return time_hello({"/bin/busybox", "echo", "hello"}); });
  rows.add("floor", "bash -c 'echo hello', bare", [] { return time_hello({"bash", "-c", "echo hello"}); });
  if (!context_.options.wants(kGroup)) return;
  add_way("warm", "warm", kWarmYaml, false);
  add_way("parts", "pooled parts", kPartsYaml, true);
  add_rested();
  add_way("cold", "fully cold", kColdYaml, false);
  add_command_line();
  add_sdks();
}

Daemon* Lifecycle::start(const std::string& name, const std::string& yaml, std::string& why) {
  try {
    auto daemon = std::make_unique<Daemon>(context_.build, context_.work, name, yaml);
    daemon->start();
    daemons_.push_back(std::move(daemon));
    return daemons_.back().get();
  } catch (const std::exception& error) {
    why = error.what();
    return nullptr;
  }
}

void Lifecycle::add_way(const std::string& name, const std::string& label, const std::string& yaml, bool may_lack_keys) {
  std::string why, note;
  bool known = Daemon::accepts(context_.build, context_.work, yaml, &why);
  if (!known && may_lack_keys) note = "default configuration: this build knows no pool keys";
  Daemon* daemon = known || may_lack_keys ? start(name, known ? yaml : "", why) : nullptr;
  if (!daemon) {
    context_.rows.ours(kGroup, label + ": create+exec+delete, TCP").unusable = first_line(why);
    return;
  }
  Client client(daemon->tcp());
  prime(client);
  add_rest(label, "TCP", daemon->tcp());
  context_.rows.all()[context_.rows.all().size() - 5].note = note;
  add_rest(label, "unix socket", daemon->by_socket());
}

// What an idle hour leaves, which is what four seconds leave: berths, but no sandbox made ahead and no root that is held.
void Lifecycle::add_rested() {
  constexpr double kRestMs = 4000;
  std::string why;
  Daemon* daemon = Daemon::accepts(context_.build, context_.work, kPartsYaml, &why) ? start("rested", kPartsYaml, why) : nullptr;
  Row& row = context_.rows.ours(kGroup, kRested, nullptr, context_.options.quick ? 10 : 5);
  if (!daemon) return void(row.unusable = first_line(why));
  Client* client = clients_.emplace_back(std::make_unique<Client>(daemon->tcp())).get();
  prime(*client);
  row.once = [client, last = Clock::now()]() mutable {
    pause_ms(kRestMs - seconds_since(last) * 1000);
    double counted = client->whole_life().counted();
    last = Clock::now();
    return counted;
  };
}

void Lifecycle::add_rest(const std::string& label, const std::string& door, Server server) {
  Client* client = clients_.emplace_back(std::make_unique<Client>(std::move(server))).get();
  Row& whole = context_.rows.ours(kGroup, label + ": create+exec+delete, " + door);
  whole.leaves_network = label == "fully cold";
  std::array<Row*, 4> parts{};
  const char* names[] = {"create", "endpoint lookup (not in the sum)", "exec", "delete"};
  for (std::size_t index = 0; index < parts.size(); ++index)
    parts[index] = &context_.rows.ours(kGroup, "  " + label + ", " + door + ": " + names[index]);
  whole.once = [client, parts] {
    Life life = client->whole_life();
    double each[] = {life.create, life.endpoint, life.exec, life.remove};
    for (std::size_t index = 0; index < parts.size(); ++index) parts[index]->samples.push_back(each[index]);
    return life.counted();
  };
}

void Lifecycle::add_command_line() {
  std::string program = (context_.build / "opensandbox").string(), why;
  Row& running = context_.rows.ours(kGroup, "opensandbox run, daemon running");
  Daemon* daemon = start("default", "", why);
  if (daemon) {
    ::setenv("OPENSANDBOX_HOST", ("unix://" + daemon->socket()).c_str(), 1);
    running.once = [=] { return time_hello({program, "run", "--", "/bin/busybox", "echo", "hello"}); };
  } else {
    running.unusable = why;
  }
  Row& alone = context_.rows.ours(
      kGroup, "opensandbox run, with a daemon of its own",
      [=] { return time_hello({"env", "-u", "OPENSANDBOX_HOST", program, "run", "--", "/bin/busybox", "echo", "hello"}); }, 5);
  alone.leaves_network = true;
  if (fs::exists("/run/opensandbox/default/api.sock")) alone.unusable = "a daemon of the default instance runs here and would be used";
}

// The published SDKs and our own, where they are installed; each in a process of its own that takes a sample when asked.
void Lifecycle::add_sdks() {
  Rows& rows = context_.rows;
  fs::path build = context_.root / "build", here = context_.root / "bench/clients", sdks = context_.root / "sdks";
  std::string python = (build / "venv/bin/python").string(), node = (build / "venv/bin/node").string();
  fs::path published = build / "node/node_modules/@alibaba-group/opensandbox/dist/index.js", own = sdks / "typescript/dist/index.js";
  auto imports = [&](const char* what) { return fs::exists(python) && capture({python, "-c", what}, true).ok(); };
  std::string path = "PYTHONPATH=" + (sdks / "python/src").string();
  bool runs = !daemons_.empty() && daemons_.back()->instance().find("default") != std::string::npos;
  Server server = runs ? daemons_.back()->tcp() : Server{};
  std::string door = runs ? daemons_.back()->sessions() : "", key = runs ? daemons_.back()->key() : "",
              at = runs ? server.address.authority() : "";
  auto add = [&](const char* name, bool installed, const Words& words) {
    Row& row = rows.ours(kGroup, name, nullptr, 2);
    if (!runs) return void(row.unusable = "the daemon with the default configuration does not start");
    if (!installed) return void(row.unusable = "not installed (./dev test installs it)");
    Helper* helper = helpers_.emplace_back(std::make_unique<Helper>(words)).get();
    row.once = [helper] { return helper->sample(); };
  };
  add("published Python SDK: create+run+kill", imports("import opensandbox"), {python, (here / "python_sdk.py").string(), at, key});
  add("published TypeScript SDK: create+run+kill", fs::exists(published),
      {node, (here / "typescript_sdk.mjs").string(), published.string(), at, key});
  add("our Python SDK: create+run+destroy", imports("import httpx"),
      {"env", path, python, (here / "own_python_sdk.py").string(), door, key});
  add("our TypeScript SDK: create+run+destroy", fs::exists(own),
      {node, (here / "own_typescript_sdk.mjs").string(), own.string(), door, key});
}

}  // namespace bench
