#include "exec.h"

#include <unistd.h>

#include <stdexcept>

#include "interrupt.h"

namespace bench {
namespace {

constexpr const char* kGroup = "exec";
constexpr std::size_t kAtOnce = 32;

}  // namespace

void Exec::add_rows() {
  if (!context_.options.wants(kGroup)) return;
  Rows& rows = context_.rows;
  try {
    daemon_ = std::make_unique<Daemon>(context_.build, context_.work, "exec");
    daemon_->start();
    tcp_ = std::make_unique<Client>(daemon_->tcp());
    socket_ = std::make_unique<Client>(daemon_->by_socket());
    door_ = tcp_->door(tcp_->create());
  } catch (const std::exception& error) {
    rows.ours(kGroup, kExec).unusable = first_line(error.what());
    return;
  }
  rows.ours(kGroup, kExec, [this] { return tcp_->exec(door_, kSameAsFloor); });
  rows.ours(kGroup, "  the same, unix socket", [this] { return socket_->exec(door_, kSameAsFloor); });
  rows.ours(kGroup, "  'echo hello', no shell needed", [this] { return tcp_->exec(door_, kPlainEcho); });
  rows.ours(kGroup, "  'echo hello; true', with bash", [this] { return tcp_->exec(door_, kShellEcho); });
  rows.ours(kGroup, "  exec stream on a new connection", [this] { return stream(); });
  rows.ours(kGroup, "  32 at once in one sandbox, until the last", [this] { return many_at_once(); }, 2);
  rows.ours(kGroup, "python context, a kernel is ready", [this] { return python_context(); }, 7);
  rows.ours(kGroup, "  python context, forked on request", [this] { return python_context_forked(); }, 7);
  rows.ours(kGroup, "  1 + 1 in a python context", [this] { return python_code(); }, 2);
}

// Our own exec, as `opensandbox exec` does it: connect, upgrade, output, exit status.
double Exec::stream() {
  auto at = Clock::now();
  Http direct(daemon_->tcp().address);
  int status = direct.upgrade(door_.path + "/osb/v1/exec", door_.headers, R"({"argv":["/bin/busybox","echo","hello"],"stdin":false})");
  if (status != 101) throw std::runtime_error("exec failed: " + std::to_string(status));
  for (std::string out;;) {
    std::string frame = direct.take(5);
    auto byte = [&](std::size_t index) { return static_cast<std::size_t>(static_cast<unsigned char>(frame[index])); };
    std::string payload = direct.take(byte(1) << 24 | byte(2) << 16 | byte(3) << 8 | byte(4));
    if (frame[0] == 10) out += payload;
    if (frame[0] != 12) continue;
    if (out != "hello\n" || payload.find("\"exit_code\":0") == std::string::npos) throw std::runtime_error("exec: " + payload);
    return micros_since(at);
  }
}

double Exec::many_at_once() {
  while (crowd_.size() < kAtOnce) crowd_.push_back(std::make_unique<Http>(daemon_->tcp().address));
  auto at = Clock::now();
  for (auto& one : crowd_) one->send("POST", door_.path + "/command", door_.headers, kSameAsFloor);
  std::size_t said = 0;
  for (auto& one : crowd_) said += one->finish().body.find("hello") != std::string::npos;
  double took = micros_since(at);
  if (said != crowd_.size()) throw std::runtime_error(std::to_string(crowd_.size() - said) + " of 32 commands failed");
  return took;
}

double Exec::context_once() {
  if (coder_.path.empty()) {
    coder_ = tcp_->door(tcp_->create());
    context_once();  // the first starts the fork server
  }
  auto at = Clock::now();
  Reply reply = tcp_->http().call("POST", coder_.path + "/code/context", coder_.headers, R"({"language":"python"})");
  if (reply.status != 200) throw std::runtime_error("no context: " + reply.body.substr(0, 200));
  double took = micros_since(at);
  tcp_->http().call("DELETE", coder_.path + "/code/contexts/" + json_text(reply.body, "id"), coder_.headers, "");
  return took;
}

// The usual case: somebody asks for a context while one kernel more than needed is ready. The pause is not counted.
double Exec::python_context() {
  if (coder_.path.empty()) context_once();
  pause_ms(400);
  return context_once();
}

// Asked for again at once: forked and set up on request.
double Exec::python_context_forked() {
  context_once();
  return context_once();
}

double Exec::python_code() {
  if (coder_.path.empty()) context_once();
  auto at = Clock::now();
  Reply reply = tcp_->http().call("POST", coder_.path + "/code", coder_.headers, R"({"code":"1 + 1","context":{"language":"python"}})");
  if (reply.body.find("\"text\":\"2\"") == std::string::npos) throw std::runtime_error("code failed: " + reply.body.substr(0, 200));
  return micros_since(at);
}

}  // namespace bench
