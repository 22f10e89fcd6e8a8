// Fd: the one owner of a file descriptor.
#pragma once
#include <unistd.h>

#include <utility>

namespace osb {

// Moved-from and default states hold -1.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int raw) noexcept : raw_(raw) {}
  Fd(Fd&& o) noexcept : raw_(o.release()) {}
  Fd& operator=(Fd&& o) noexcept {
    if (this != &o) reset(o.release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(raw_, -1); }
  // close(2) is never retried: on Linux the number is free even after EINTR.
  void reset(int raw = -1) noexcept {
    if (raw_ >= 0) ::close(raw_);
    raw_ = raw;
  }

 private:
  int raw_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};

}  // namespace osb
