// The keeper: one thread, one epoll loop, no privilege. It makes, watches and ends the sandboxes of one instance of the `process`
// runtime, and speaks the launcher's language (model/launch_wire.h) with its one client, serve.
//
// Its sandboxes are its children and die with it (PDEATHSIG of their first processes, whose end is the end of their pid namespaces);
// it ends, with all of them, when its last client has gone. So nothing survives either of the two, and there is no ledger.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/fd.h"
#include "base/result.h"
#include "confine/host.h"
#include "launch/clients.h"

namespace osb::confine {

struct KeeperOptions {
  HostOptions host;
  bool private_instance = false;          // takes its run directory along when it ends
  wire::Step fail_at = wire::Step::none;  // fault injection for tests: this step of every create fails
  wire::Step die_at = wire::Step::none;   // ... or the process that carries it out dies
};

class Keeper final : launch::Clients::Owner {
 public:
  static Result<std::unique_ptr<Keeper>> start(const KeeperOptions& options);
  // Serves until it is stopped or its last client has gone.
  Result<> run();

 private:
  enum class Phase { making, live, dying };

  using Pending = launch::Pending;

  struct Sandbox {
    std::string id;
    Phase phase = Phase::making;
    std::int32_t pid = 0;
    Fd pidfd;
    Fd report;  // while making
    Fd oom_counter;
    std::uint64_t oom_kills = 0;
    Limits limits;
    std::uint64_t deadline = 0;
    std::optional<Pending> create;
    wire::Step failed = wire::Step::none;
    int failed_errno = 0;
    std::string failed_detail;
    wire::Cause cause = wire::Cause::unknown;
    int status = 0;
    std::uint64_t cpu_nanos = 0;
    std::uint64_t peak_bytes = 0;
  };

  enum class Watched { listener, client, report, pid, helper, timer };
  struct Watch {
    Watched what;
    std::uint64_t client = 0;
    std::string id = {};
  };

  Keeper(KeeperOptions options, Host host) : options_(std::move(options)), host_(std::move(host)) {}

  // keeper.cc: the loop and the dispatch
  Result<> open_doors();
  Result<> watch(int fd, Watch watch);
  void unwatch(int fd) override;
  void on_ready(int fd, const Watch& watch);
  void accept_client();
  Result<> watch_client(int fd, std::uint64_t client) override { return watch(fd, {Watched::client, client}); }
  void dispatch(std::uint64_t client, launch::Received& message) override;
  void on_client_gone(std::uint64_t) override {}  // a create that nobody waits for any more is ended with all the others
  void arm_timer();
  void on_timer();
  Sandbox* find(const std::string& id);
  Sandbox* find(const wire::Key& key);
  bool finished() const;
  void close_door();
  void leave_nothing();

  // sandboxes.cc: how they come and go
  void create(const Pending& to, const wire::CreateRequest& request, Fd setup);
  Result<> begin_create(Sandbox& sandbox, const wire::CreateRequest& request, const Fd& setup);
  Result<> make_process(Sandbox& sandbox, Plan& plan);
  void on_report(Sandbox& sandbox);
  bool take_report(Sandbox& sandbox);
  void answer_create(Sandbox& sandbox);
  void kill(Sandbox& sandbox, wire::Cause cause);
  void on_pid_exit(Sandbox& sandbox);
  void finish(Sandbox& sandbox);
  void destroy_all();

  // memory.cc: what all processes of a sandbox have together
  Result<> open_oom_counter(Sandbox& sandbox);
  void note_oom_kill(Sandbox& sandbox);
  void look_at_memory(std::uint64_t now);

  // requests.cc: what serve may ask of an existing one
  void set_deadline(const Pending& to, const wire::DeadlineRequest& request);
  void list(const Pending& to, const wire::ListRequest& request);
  void usage(const Pending& to, const Sandbox& sandbox);
  void dial(const Pending& to, const Sandbox& sandbox);
  void reap_helper(int fd);

  std::string socket_path(std::string_view id) const { return options_.host.run_dir + "/sandboxes/" + std::string(id) + ".sock"; }

  KeeperOptions options_;
  Host host_;
  Fd lock_;
  Fd epoll_;
  Fd timer_;
  Fd listener_;
  std::unordered_map<int, Watch> watches_;
  std::map<int, Fd> helpers_;
  launch::Clients clients_{*this, epoll_};
  std::uint64_t give_up_at_ = 0;  // nobody has come until then: there is nothing to stay for
  std::uint64_t next_look_ = 0;   // at the memory of sandboxes
  bool stopping_ = false;
  std::map<std::string, Sandbox, std::less<>> sandboxes_;
};

}  // namespace osb::confine
