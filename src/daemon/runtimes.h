// Which runtime the configuration names, started and ready.
#pragma once
#include <functional>
#include <memory>

#include "async/task.h"
#include "base/result.h"
#include "daemon/config.h"
#include "daemon/instance.h"
#include "image/image.h"
#include "runtime/runtime.h"

namespace osb::daemon {

struct RuntimeSetting {
  asio::io_context& io;
  const Config& config;
  const Instance& instance;
  image::Store& images;
  runtime::EndedHandler ended;
  bool private_instance = false;
};

struct StartedRuntime {
  std::unique_ptr<runtime::Runtime> runtime;
  std::function<Task<void>()> stop;  // before the runtime dies; may be empty
};

using RuntimeFactory = std::function<Task<Result<StartedRuntime>>(RuntimeSetting)>;

// A program of ours: beside this one in a build folder, in libexec where we are installed.
Result<std::string> find_program(const std::string& name);

// The factory of the running daemon; tests bring their own.
Task<Result<StartedRuntime>> start_runtime(RuntimeSetting setting);

}  // namespace osb::daemon
