#include "cli/runtime_choice.h"

#include <limits.h>

#include <cerrno>
#include <cstdlib>

#include "base/text.h"

namespace osb::cli {

Result<WantedRuntime> read_wanted_runtime(const Args& args) {
  WantedRuntime out;
  out.name = args.get("runtime");
  if (const char* set = std::getenv("OPENSANDBOX_RUNTIME"); out.name.empty() && set != nullptr) out.name = set;
  if (out.name == "subprocess") out.name = "process";
  if (!args.has("workspace")) return out;
  if (out.name != "process") return usage_error("--workspace needs --runtime process", "with a daemon, mount a volume instead: -v");
  char path[PATH_MAX];
  auto given = args.get("workspace");
  if (::realpath(given.c_str(), path) == nullptr) return usage_error(cat("--workspace ", given, ": ", std::strerror(errno)));
  out.workspace = path;
  return out;
}

Result<std::string> runtime_of(Api& api) {
  TRY(auto reply, api.call("GET", "/v1/version"));
  TRY(auto object, parse_object(reply.body));
  return text_of(object, "runtime");
}

}  // namespace osb::cli
