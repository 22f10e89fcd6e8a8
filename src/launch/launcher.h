// The launcher: one thread, one epoll loop. It makes, watches and ends the sandboxes of one instance.
//
// Requests come from clients on the seqpacket socket (model/launch_wire.h). Nothing here waits: a create goes on in the
// new process while the loop serves others, a kill is answered when it is issued and finished when pid 1 is reaped.
#pragma once
#include <sys/epoll.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/fd.h"
#include "base/result.h"
#include "enter/plan.h"
#include "launch/berths.h"
#include "launch/capture.h"
#include "launch/cgroups.h"
#include "launch/chores.h"
#include "launch/clients.h"
#include "launch/host.h"
#include "launch/id_range.h"
#include "launch/ledger.h"
#include "launch/stem.h"

namespace osb::launch {

struct LauncherOptions {
  HostOptions host;
  bool private_instance = false;          // ends, with all sandboxes, when its last client has gone
  unsigned allowed_uid = 0;               // may command us besides root
  std::size_t pool = 8;                   // berths kept ready; 0: none is, and none is used twice
  std::size_t stems = 0;                  // processes that divide into sandboxes; 0: one for four processors, at most four
  wire::Step fail_at = wire::Step::none;  // fault injection for tests: this step of every create fails
  wire::Step die_at = wire::Step::none;   // ... or the process that carries it out dies
};

class Launcher final : Clients::Owner {
 public:
  static Result<std::unique_ptr<Launcher>> start(const LauncherOptions& options);
  // Serves until stopped; 0 = ended on request.
  Result<> run();

 private:
  enum class Phase { making, live, dying };

  struct Capture {  // a snapshot under way
    Pending to;
    Fd work;
    CopyLimits limits;
    bool thaw = false;  // we froze it; a sandbox that was paused before stays so
    bool late = false;
    Fd helper = Fd();
    Fd report = Fd();
    CaptureReport facts = {};
    std::uint64_t began = 0;
    std::uint64_t deadline = 0;
  };

  struct Sandbox {
    std::string id;
    std::uint64_t number = 0;  // in the order of their creates; 0 = a launcher before us made it
    Berth berth;
    Phase phase = Phase::making;
    std::int32_t pid = 0;
    Fd pidfd;
    ProgramCopy program;
    Fd report;   // while making
    Fd set_up;   // a spare's: the set-up goes this way when it is claimed
    Fd started;  // while making, when the answer does not wait for execd: ends when the new process is a sandbox
    bool has_range = false;
    bool recorded = false;  // in the ledger
    bool dividing = false;  // a stem has its plan and has not answered
    bool spoils = false;    // its berth is not used again, whatever it looks like
    bool usage_read = false;
    bool frozen = false;
    std::uint64_t deadline = 0;
    std::uint64_t spare_of = 0;  // the client that may claim it; 0 = it is a sandbox
    std::optional<Pending> create;
    std::optional<Pending> freeze;
    std::optional<Capture> capture;
    wire::Step failed = wire::Step::none;
    int failed_errno = 0;
    std::string failed_detail;
    wire::Cause cause = wire::Cause::unknown;
    int status = 0;
    std::uint64_t killed_at = 0;
    CgroupUsage usage;  // read once, when it has ended
  };

  enum class Watched { listener, client, stem, sprout, report, started, pid, helper, capture, timer };
  struct Watch {
    Watched what;
    std::uint64_t client = 0;
    std::string id;
  };

  explicit Launcher(LauncherOptions options, Host host, Cgroups groups, Ledger ledger, IdRanges ranges);

  // launcher.cc: the loop and the dispatch
  Result<> open_loop();
  Result<> listen();
  Result<> watch(int fd, Watch watch);
  void unwatch(int fd) override;
  int prepare_or_wait(epoll_event* events, int most);
  void on_ready(int fd, const Watch& watch);
  void accept_client();
  Result<> watch_client(int fd, std::uint64_t client) override { return watch(fd, {.what = Watched::client, .client = client, .id = {}}); }
  void dispatch(std::uint64_t client, Received& message) override;
  void on_client_gone(std::uint64_t client) override;
  void schedule(std::uint64_t boot_nanos, Chore chore, const std::string& id);
  void run_due_chores();
  void arm_timer();
  Sandbox* find(const wire::Key& key);
  Sandbox* find(const std::string& id);
  bool finished() const;
  bool lost_home();
  bool works_elsewhere(const wire::HelloRequest& request);

  // requests.cc: what a client may ask of an existing sandbox
  void set_deadline(const Pending& to, const wire::DeadlineRequest& request);
  void freeze(const Pending& to, Sandbox& sandbox);
  void thaw(const Pending& to, Sandbox& sandbox);
  void check_frozen(Sandbox& sandbox);
  void dial(const Pending& to, Sandbox& sandbox);
  void list(const Pending& to, const wire::ListRequest& request);
  void usage(const Pending& to, Sandbox& sandbox);

  // With the files of its group open, for as long as it takes if they are not held.
  template <class Read>
  CgroupUsage with_group(const Sandbox& sandbox, Read read) {
    if (sandbox.berth.group.v2) return read(sandbox.berth.group);
    auto group = groups_.open(sandbox.berth.group.name);
    if (!group) return {};
    group->cpu_nanos_before = sandbox.berth.group.cpu_nanos_before;
    return read(*group);
  }

  // snapshot.cc
  void snapshot(const Pending& to, const wire::SnapshotRequest& request, Fd work);
  void begin_capture(Sandbox& sandbox);
  void stop_capture(Sandbox& sandbox);
  void on_capture_end(Sandbox& sandbox);
  void end_capture(Sandbox& sandbox, int sys, std::string_view detail);
  void reply_snapshot(const Pending& to, const Capture& capture, int sys, std::string_view detail = {});
  void drop_captures_of(std::uint64_t client);
  void thaw_adopted(Sandbox& sandbox);

  // stage.cc: volumes of a create that is about to come
  struct StagedVolume {
    std::uint64_t client = 0;
    wire::StageVolumeRequest request;
    Fd tree;
  };
  struct VolumeParts {  // kept until the new process has its copies
    std::vector<Fd> namespaces;
    std::vector<Fd> sockets;
  };
  void stage_volume(const Pending& to, const wire::StageVolumeRequest& request, Fd tree);
  void drop_staged_of(std::uint64_t client);
  Result<> plan_volumes(std::vector<StagedVolume>& staged, enter::EnterPlan& plan, VolumeParts& parts);

  // create.cc: the parent's half of the create list
  void create(const Pending& to, const wire::CreateRequest& request, Fd setup);
  Result<> begin_create(Sandbox& sandbox, const wire::CreateRequest& request, const Fd& setup, std::vector<StagedVolume>& volumes);
  Result<> record(const Sandbox& sandbox);
  static void plan_berth(enter::EnterPlan& plan, const Berth& berth);
  Result<> divide(Sandbox& sandbox, const enter::EnterPlan& plan);
  Result<> ask_stem(const enter::EnterPlan& plan, const std::string& id);
  bool become_sandbox(Sandbox& sandbox, const enter::EnterPlan& plan, const SproutKind& kind);
  Result<> watch_stem(Stem& stem, int before);
  void hear_stems();
  void on_divided(Sandbox& sandbox, const Stem::Answer& answer);
  void hold_berth(const Sandbox& sandbox);
  Result<> take_child(Sandbox& sandbox, std::int32_t child, Fd pidfd);
  void check_stems(std::uint64_t now);
  void abandon_division(Sandbox& sandbox);
  void end_all_in(const std::string& group);
  void freshen_stems();
  bool take_report(Sandbox& sandbox);
  void on_report(Sandbox& sandbox);
  void on_started(Sandbox& sandbox);
  void answer_create(Sandbox& sandbox);
  void watch_helper(Fd pidfd);
  void reap_helper(int fd);

  // sprouting.cc: first processes made ahead of time
  bool wants_sprout() const;
  bool sprout_one();
  Result<> ask_for_sprout();
  void on_sprouted(const Stem::Answer& answer);
  void on_sprout_death();

  // claim.cc: sandboxes made ahead of time
  Result<Fd> open_set_up_channel(Sandbox& sandbox, const Fd& known);
  void claim(const Pending& to, const wire::ClaimRequest& request, Fd setup);
  void end_spares_of(std::uint64_t client);
  std::size_t living() const;  // sandboxes that are somebody's
  Result<> hand_over(Sandbox& sandbox, const wire::ClaimRequest& request, const Fd& setup);

  // teardown.cc: every way a sandbox ends
  void kill(Sandbox& sandbox, wire::Cause cause);
  void on_pid_exit(Sandbox& sandbox);
  void hasten(Sandbox& sandbox, std::uint64_t now);
  void finish(Sandbox& sandbox);
  bool clear_berth(Sandbox& sandbox);  // false: a process is still on its way out
  bool is_crowded() const;
  bool may_remove_groups() const;
  void trim_reserve();
  void trim_reserve_later();
  void destroy_all(wire::Cause cause);

  // adopt.cc: what a launcher before us left
  Result<> adopt();
  void adopt_one(const LedgerRecord& record);
  void end_foreign(const LedgerRecord& record);
  void remove_strays();
  void remove_stray(const std::string& name);
  void close_door();
  void leave_nothing();

  std::string socket_path(std::string_view id) const { return options_.host.run_dir + "/sandboxes/" + std::string(id) + ".sock"; }

  std::string frozen_mark(std::string_view id) const { return options_.host.run_dir + "/sandboxes/" + std::string(id) + ".frozen"; }

  LauncherOptions options_;
  Host host_;
  ProgramCopies programs_;
  std::deque<Stem> stems_;
  Cgroups groups_;
  Ledger ledger_;
  IdRanges ranges_;
  Switches switches_;
  Berths berths_;
  struct Sprouting {
    Berth berth;
    SproutKind kind;
    Fd socket;
  };
  std::optional<Sprouting> sprouting_;  // a stem has been asked
  bool barren_ = false;                 // one failed or died; tried again after the next create
  SproutKind last_kind_;                // what the next one is probably asked for
  bool trim_due_ = false;
  bool stems_due_ = false;
  std::uint64_t creates_ = 0;
  std::size_t most_at_once_ = 0;  // sandboxes, since the last group that was put off is gone
  std::uint64_t last_create_ = 0;
  std::uint64_t ends_ = 0;
  std::uint64_t turns_at_trim_ = 0;  // creates and ends
  std::string boot_id_;
  Fd lock_;
  Fd epoll_;
  Fd listener_;
  Fd timer_;
  std::unordered_map<int, Watch> watches_;
  std::map<int, Fd> helpers_;
  Clients clients_{*this, epoll_};
  bool stopping_ = false;
  bool homeless_ = false;  // our directories are gone: ends at once and leaves the sandboxes to the next launcher
  bool retiring_ = false;  // asked to stop: ends when sandboxes and clients have gone, unless a client asks for something before that
  std::map<std::string, Sandbox, std::less<>> sandboxes_;
  std::map<std::uint64_t, std::string> held_;                // whose berths have their descriptors open, by number
  std::map<std::string, std::vector<StagedVolume>> staged_;  // by the id of the sandbox
  Chores chores_;
  std::uint64_t armed_for_ = 0;  // the timer; 0: not at all
};

// Ends and removes every private instance whose launcher is dead; called by each launcher that starts.
void sweep_dead_private_instances(const std::string& run_root, const std::string& ranges_dir, const std::string& own_instance);

}  // namespace osb::launch
