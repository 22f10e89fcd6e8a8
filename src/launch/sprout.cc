#include "launch/sprout.h"

#include <poll.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "enter/plan_message.h"
#include "launch/end_child.h"
#include "sys/descriptor_message.h"

namespace osb::launch {

Sprout& Sprout::operator=(Sprout&& other) noexcept {
  end();
  kind_ = std::move(other.kind_);
  pid_ = other.pid_;
  pidfd_ = std::move(other.pidfd_);
  program_ = std::move(other.program_);
  socket_ = std::move(other.socket_);
  epoll_ = other.epoll_;
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
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, pidfd_.get(), nullptr);
  return {pid_, std::move(pidfd_), std::move(program_)};
}

void Sprout::end() {
  socket_.reset();
  if (!pidfd_) return;
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, pidfd_.get(), nullptr);
  if (!end_child(pidfd_.get())) log::error("a first process that nobody needs does not die", {{"pid", pid_}});
  pidfd_.reset();
  program_.reset();
}

}  // namespace osb::launch
