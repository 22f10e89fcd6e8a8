// A process that takes one sample each time it is asked: it answers every line on its standard input with the microseconds on a line.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>

#include "process.h"

namespace bench {

class Helper {
 public:
  // A program.
  explicit Helper(const Words& words);
  // A copy of ourselves that first runs `prepare`, which may enter namespaces.
  Helper(const std::function<void()>& prepare, const std::function<double()>& once);
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  double sample();  // throws with its words if it answers anything but a number

 private:
  void open_pipes(int ask[2], int answer[2]);

  pid_t pid_ = -1;
  int ask_ = -1, answer_ = -1;
};

}  // namespace bench
