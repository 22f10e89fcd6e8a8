// Sessions: the table of bash sessions. A session stays until it is deleted or the sandbox ends; there are at most 64.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "execd/shell/session.h"

namespace osb::execd::shell {

class Sessions {
 public:
  static constexpr std::size_t kMax = 64;

  bool full() const { return sessions_.size() >= kMax; }
  void add(std::shared_ptr<Session> session) { sessions_.push_back(std::move(session)); }
  std::shared_ptr<Session> find(std::string_view id) const;
  bool close(std::string_view id);  // false: there is none

  struct Found {
    std::shared_ptr<Session> session;
    std::shared_ptr<ShellRun> run;
  };
  Found find_run(std::string_view run_id) const;  // one that has not ended

 private:
  std::vector<std::shared_ptr<Session>> sessions_;
};

}  // namespace osb::execd::shell
