// First processes made ahead of time, one for each berth that is kept: asked of the stem while the launcher has nothing else to do.
#include <sys/socket.h>

#include <cerrno>

#include "base/log.h"
#include "launch/launcher.h"
#include "sys/raw.h"

namespace osb::launch {

// Who asked twice will ask again; a launcher that was started for one sandbox makes no second.
bool Launcher::wants_sprout() const {
  bool idle = !stopping_ && !retiring_ && !sprouting_;
  return idle && creates_ > 1 && !barren_ && !last_kind_.shape.empty() && berths_.wants_sprout();
}

bool Launcher::sprout_one() {
  if (!wants_sprout()) return false;
  auto asked = ask_for_sprout();
  if (asked) return true;
  log::warn("cannot make a first process ahead of time", {{"error", asked.error().what()}});
  barren_ = true;
  if (sprouting_) berths_.give_back(std::move(std::exchange(sprouting_, std::nullopt)->berth));
  return false;
}

Result<> Launcher::ask_for_sprout() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Error::from_errno("socketpair", errno);
  sprouting_ = Sprouting{*berths_.take_bare(), last_kind_, Fd(ends[0])};
  Fd theirs(ends[1]);
  CHECK_OK(groups_.limit(sprouting_->berth.group, last_kind_.limits));
  enter::EnterPlan plan;
  plan.host = host_.facts();
  plan.shape = last_kind_.shape;
  plan.policy = last_kind_.policy;
  plan.limits = last_kind_.limits;
  plan.rest = theirs.get();
  plan.fail_at = options_.fail_at;
  plan.die_at = options_.die_at;
  plan_berth(plan, sprouting_->berth);
  return ask_stem(plan, {});
}

void Launcher::on_sprouted(const Stem::Answer& answer) {
  auto child = answer.child;
  if (!sprouting_) return;
  auto [berth, kind, socket] = *std::exchange(sprouting_, std::nullopt);
  Fd pidfd(child > 0 ? sys::raw::pidfd_open(child) : -1);
  if (pidfd) {
    // Without the watch it would be buried by whoever wants to use it.
    if (auto watched = watch(pidfd.get(), {.what = Watched::sprout, .client = 0, .id = {}}); !watched) barren_ = true;
    berth.sprout = Sprout(std::move(kind), child, std::move(pidfd), answer.program, std::move(socket), epoll_.get());
    return berths_.give_back(std::move(berth));
  }
  barren_ = true;
  log::warn("no first process ahead of time", {{"error", Error::from_errno("divide", child < 0 ? -child : errno).what()}});
  // A stem that did not live to tell may have divided all the same.
  end_all_in(berth.group.name);
  berths_.put_off(std::move(berth));
  trim_reserve_later();
}

// Nobody ends one that waits but a mistake of ours or a foreign hand. Making another at once could go on for ever.
void Launcher::on_sprout_death() {
  barren_ = true;
  berths_.end_dead_sprouts();
}

}  // namespace osb::launch
