#include "launch/sprout.h"

#include <poll.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "enter/plan_message.h"
#include "sys/descriptor_message.h"
#include "sys/raw.h"

namespace osb::launch {

Sprout& Sprout::operator=(Sprout&& other) {
  end();
  kind_ = std::move(other.kind_);
  pid_ = other.pid_;
  pidfd_ = std::move(other.pidfd_);
  socket_ = std::move(other.socket_);
  return *this;
}

bool Sprout::has_died() const {
  pollfd end{pidfd_.get(), POLLIN, 0};
  return pidfd_ && ::poll(&end, 1, 0) > 0;
}

Sprout::Used Sprout::use(enter::EnterPlan plan) {
  plan.cgroup = -1;  // it is there already
  plan.cgroup_tasks.clear();
  plan.network_namespace = -1;
  auto message = enter::write_plan(plan);
  auto sent = sys::send_with_descriptors(socket_.get(), message.bytes.data(), message.bytes.size(), message.descriptors.data(),
                                         message.descriptors.size());
  if (sent != static_cast<ssize_t>(message.bytes.size())) {
    end();
    return {};
  }
  socket_.reset();
  return {pid_, std::move(pidfd_)};
}

void Sprout::end() {
  socket_.reset();
  if (!pidfd_) return;
  sys::raw::pidfd_send_signal(pidfd_.get(), SIGKILL);
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED) != 0 && errno == EINTR) {
  }
  pidfd_.reset();
}

}  // namespace osb::launch
