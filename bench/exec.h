// Commands and code in a sandbox that already runs.
#pragma once
#include <memory>
#include <vector>

#include "daemon.h"
#include "options.h"

namespace bench {

inline const std::string kExec = "exec of busybox echo, TCP";

class Exec {
 public:
  explicit Exec(Context& context) : context_(context) {}
  void add_rows();

 private:
  double stream();
  double many_at_once();
  double context_once();
  double python_context();
  double python_context_forked();
  double python_code();

  Context& context_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Client> tcp_, socket_;
  std::vector<std::unique_ptr<Http>> crowd_;  // one connection for each of the commands that run at once
  Door door_, coder_;                         // the second sandbox has a Python kernel
};

}  // namespace bench
