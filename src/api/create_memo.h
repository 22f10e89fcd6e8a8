// The last few bodies of creates and what they ask for: agents send the same one again and again, and equal bytes are read the same way.
//
// Nothing stays here that is anybody's own: bodies with an environment, credentials, metadata, extensions or volumes are read each time.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "model/sandbox.h"

namespace osb::api {

class CreateMemo {
 public:
  static constexpr std::size_t kMost = 4;
  static constexpr std::size_t kMaxBodyBytes = 1024;

  const SandboxSpec* find(std::string_view body) const;  // null when it must be read; until the next keep()
  void keep(std::string_view body, const SandboxSpec& spec);
  void clear() { *this = {}; }  // what the operator lets a body say has changed

 private:
  struct Kept {
    std::string body;  // "" = free
    SandboxSpec spec;
  };
  std::array<Kept, kMost> kept_;
  std::size_t next_ = 0;  // the oldest
};

}  // namespace osb::api
