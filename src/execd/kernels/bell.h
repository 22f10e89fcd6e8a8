// Bell: several coroutines wait for something to change; whoever changes it rings.
#pragma once
#include <list>

#include "async/task.h"

namespace osb::execd {

class Bell {
 public:
  explicit Bell(Executor executor) : executor_(executor) {}
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() {
    for (Timer* timer : waiting_) timer->cancel();
  }
  // Until it rings, at most until `until`. Look again afterwards: a ring says only that something changed.
  Task<void> wait(Timer::time_point until) {
    Timer timer(executor_, until);
    auto place = waiting_.insert(waiting_.end(), &timer);
    co_await timer.async_wait(nothrow);
    waiting_.erase(place);
  }

 private:
  Executor executor_;
  std::list<Timer*> waiting_;
};

}  // namespace osb::execd
