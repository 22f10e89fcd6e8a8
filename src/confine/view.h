// The file system of one sandbox, built by its own first process inside its own user and mount namespace.
//
// Everything is put together below the keeper's empty work directory, on file systems of memory that only this process sees, and
// becomes the root by pivot_root; the host's tree is then unmounted. Each function is one step of enter(): true, or false with errno.
#pragma once
#include <cstdint>

#include "confine/plan.h"

namespace osb::confine {

class View {
 public:
  explicit View(const Plan& plan) : plan_(plan) {}

  bool stage();
  bool image_layer();
  bool root();
  bool host_directories();
  bool proc();
  bool proc_masks();
  bool sys();
  bool dev();
  bool etc();
  bool scratch();
  bool switch_root();

 private:
  bool fill_scaffold();
  bool fill_shape();
  bool show(const char* from, const char* at, std::uint64_t attributes);
  bool show_workspace();
  // Profile minimal: /proc has processes and nothing else, so nothing in it needs a cover.
  bool processes_only() const { return plan_.base.policy.syscalls == SyscallProfile::minimal; }

  const Plan& plan_;
};

}  // namespace osb::confine
