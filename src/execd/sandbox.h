// Sandbox: the parts every route works with, owned in one place. Everything runs on the one I/O thread.
#pragma once
#include <memory>

#include "async/task_group.h"
#include "execd/commands.h"
#include "execd/kernels/kernels.h"
#include "execd/metrics/gauge.h"
#include "execd/processes.h"
#include "execd/pty/terminal.h"
#include "execd/ring.h"
#include "execd/runs/runs.h"
#include "execd/setup.h"
#include "execd/shell/sessions.h"

namespace osb::execd {

inline constexpr std::size_t kEntrypointRing = 64 * 1024;

struct Sandbox {
  Sandbox(Executor io_executor, Setup set_up, Fd oom_counter)
      : executor(io_executor),
        setup(std::move(set_up)),
        processes(io_executor, setup, std::move(oom_counter)),
        runs(io_executor, output_budget),
        commands(output_budget),
        tasks(io_executor),
        kernels(io_executor, *this) {}
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  Executor executor;
  Setup setup;
  Processes processes;
  OutputBudget output_budget;
  runs::Runs runs;  // before commands: what it keeps gives way first
  Commands commands;
  shell::Sessions sessions;
  Terminals terminals;
  TaskGroup tasks;  // output that goes on after the request that started it
  Kernels kernels;  // of the code interpreter
  Ring entrypoint_output{kEntrypointRing, nullptr};
  std::size_t file_watches = 0;  // streams of /osb/v1/files/watch
  metrics::Gauge gauge;
};

}  // namespace osb::execd
