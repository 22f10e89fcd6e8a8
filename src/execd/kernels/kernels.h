// Kernels: the contexts of the code interpreter. Each has a language, a directory and, once used, a kernel of its own.
//
// Bounded: 128 contexts, 16 runs that wait for their turn in one of them. Once Python is in use one kernel more than
// needed is kept ready, so that a new context costs a millisecond and not the start of an interpreter.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "execd/kernels/bell.h"
#include "execd/kernels/folder.h"
#include "execd/kernels/fork_server.h"
#include "execd/kernels/kernel.h"

namespace osb::execd {

namespace shell {
class Session;
}

struct Context {
  Context(Executor executor, std::string the_language, std::string directory);

  std::string id;  // 32 hex digits
  std::string language;
  std::string cwd;          // as the client gave it
  bool is_default = false;  // shared by all who name only the language
  bool removed = false;
  std::shared_ptr<Kernel> kernel;
  std::shared_ptr<shell::Session> shell;  // instead of a kernel: bash where the image has no kernel for it

  // Runs take their turn in the order they came. `first` when nobody is before them.
  static constexpr std::size_t kMaxWaiting = 16;
  bool full() const;
  bool first(std::uint64_t ticket) const { return ticket == serving_; }
  std::uint64_t draw() { return next_++; }
  Task<void> wait_turn(std::uint64_t ticket);
  void leave();

 private:
  Bell turn_;
  std::uint64_t next_ = 0;
  std::uint64_t serving_ = 0;
};

class Kernels {
 public:
  static constexpr std::size_t kMaxContexts = 128;

  Kernels(Executor executor, Sandbox& sandbox) : executor_(executor), sandbox_(sandbox), server_(executor, sandbox) {}

  // What OPENSANDBOX_PRESTART names is got ready before anybody asks.
  void prestart();

  // The context has a kernel that answers. Field "cwd" or "language": the caller's mistake.
  Task<Result<std::shared_ptr<Context>>> create(std::string language, std::string cwd);
  // Made at first use, without a kernel.
  Result<std::shared_ptr<Context>> default_for(std::string_view language);
  std::shared_ptr<Context> find(std::string_view id) const;
  std::vector<std::shared_ptr<Context>> list(std::string_view language) const;  // "" = all
  void remove(Context& context);

  // For whoever has the turn: a kernel that is alive, started where there is none.
  Task<Result<>> ensure_kernel(std::shared_ptr<Context> context);

  KernelFolder& folder() { return folder_; }
  ForkServer& server() { return server_; }

 private:
  Result<std::shared_ptr<Context>> add(std::string language, std::string cwd);
  Result<> give_shell(Context& context);
  Result<Kernelspec> spec_for(std::string_view language) const;
  Task<Result<std::shared_ptr<Kernel>>> start_kernel(Kernelspec spec, std::string language, std::string cwd);
  Task<std::shared_ptr<Kernel>> take_spare(Kernelspec spec, std::string cwd);
  void wish_for_spare(const Kernelspec& spec);
  Task<void> make_spare(Kernelspec spec, Timer::duration pause);

  Executor executor_;
  Sandbox& sandbox_;
  KernelFolder folder_;
  ForkServer server_;
  std::shared_ptr<Kernel> spare_;
  bool making_spare_ = false;
  int starting_ = 0;
  std::vector<std::shared_ptr<Context>> contexts_;  // oldest first
};

}  // namespace osb::execd
