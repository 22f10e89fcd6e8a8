// Fifo: a pipe with a name, for the moment in which a running shell opens its other end.
//
// A shell cannot be handed a descriptor, but it can open a path. The name is random, belongs to the user of the shell and
// is gone when the run has ended; what could be done with it (writing to the run's output) its user can do anyway.
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "execd/accounts.h"

namespace osb::execd::shell {

class Fifo {
 public:
  // `owner`: whose shell will open it; nullptr = execd's own user.
  static Result<Fifo> make(const Identity* owner);
  Fifo(Fifo&&) = default;
  Fifo& operator=(Fifo&&) = default;
  ~Fifo() { remove(); }

  const std::string& path() const { return path_; }
  Fd take_read_end() { return std::move(read_); }
  // Our own write end keeps the pipe from looking ended before the shell has opened it. Called when the run has ended.
  void remove();

 private:
  Fifo(std::string path, Fd read, Fd write) : path_(std::move(path)), read_(std::move(read)), write_(std::move(write)) {}
  std::string path_;  // empty after a move and after remove()
  Fd read_;
  Fd write_;
};

}  // namespace osb::execd::shell
