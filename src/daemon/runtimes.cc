#include "daemon/runtimes.h"

#include <unistd.h>

#include <climits>

#include "base/text.h"
#include "runtime/native/native_runtime.h"
#include "runtime/process/process_runtime.h"
#include "runtime/process/workspace.h"

namespace osb::daemon {
namespace {

// Id ranges are dealt out once a host, whatever directories its daemons use.
constexpr std::string_view kRangesDir = "/run/opensandbox/ranges";

Result<std::string> own_directory() {
  char path[PATH_MAX];
  auto n = ::readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) return Error::from_errno("find our own program", errno);
  std::string_view self(path, static_cast<std::size_t>(n));
  return std::string(self.substr(0, self.rfind('/')));
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  TRY(auto here, own_directory());
  for (const auto& path : {cat(here, "/../libexec/opensandbox/", name), cat(here, "/", name)})
    if (::access(path.c_str(), X_OK) == 0) return path;
  return Error(Errc::unavailable, cat(name, " is not installed beside this program"))
      .with_hint("install the package again, or build all targets");
}

namespace {

Task<Result<StartedRuntime>> start_native(RuntimeSetting setting) {
  runtime::NativeOptions options;
  options.images = &setting.images;
  options.launch.instance = setting.config.server.instance;
  options.launch.run_dir = setting.instance.run_dir();
  options.launch.ranges_dir = kRangesDir;
  options.launch.data_dir = setting.instance.data_dir();
  options.launch.private_instance = setting.private_instance;
  options.launch.parts = setting.config.pool.parts;
  CO_TRY(options.launch.launch_path, find_program("opensandbox-launch"));
  CO_TRY(options.launch.execd_path, find_program("opensandbox-execd"));
  CO_TRY(auto native, co_await runtime::NativeRuntime::start(setting.io, std::move(options)));
  native->set_ended_handler(std::move(setting.ended));
  StartedRuntime started;
  started.stop = [raw = native.get(), end_all = setting.private_instance] { return raw->stop(end_all); };
  started.runtime = std::move(native);
  co_return started;
}

Task<Result<StartedRuntime>> start_process(RuntimeSetting setting) {
  runtime::ProcessOptions options;
  options.images = &setting.images;
  options.run_dir = setting.instance.run_dir();
  options.data_dir = setting.instance.data_dir();
  options.private_instance = setting.private_instance;
  auto places = runtime::private_places(options.run_dir, setting.config.storage.state_dir);
  if (auto fine = runtime::check_programs(places); !fine) co_return std::move(fine).error();
  CO_TRY(options.workspace, runtime::checked_workspace(setting.config.process.workspace, places));
  CO_TRY(options.confine_path, find_program("opensandbox-confine"));
  CO_TRY(options.execd_path, find_program("opensandbox-execd"));
  CO_TRY(auto process, co_await runtime::ProcessRuntime::start(setting.io, std::move(options)));
  process->set_ended_handler(std::move(setting.ended));
  StartedRuntime started;
  started.stop = [raw = process.get()] { return raw->stop(); };
  started.runtime = std::move(process);
  co_return started;
}

}  // namespace

Task<Result<StartedRuntime>> start_runtime(RuntimeSetting setting) {
  if (setting.config.runtime == "native") co_return co_await start_native(std::move(setting));
  if (setting.config.runtime == "process") co_return co_await start_process(std::move(setting));
  co_return Error(Errc::unsupported, cat("there is no runtime '", setting.config.runtime, "'")).with_hint("set runtime: native or process");
}

}  // namespace osb::daemon
