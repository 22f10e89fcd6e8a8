// One sandbox's life, create + exec + delete as three requests on a kept connection, with a daemon of its own for each way
// of having things ready: a whole sandbox (warm), parts of one (pooled parts; after a rest: those that outlast an idle hour), nothing
// (fully cold).
#pragma once
#include <memory>
#include <vector>

#include "daemon.h"
#include "helper.h"
#include "options.h"

namespace bench {

inline const std::string kWarm = "warm: create+exec+delete, TCP";
inline const std::string kParts = "pooled parts: create+exec+delete, TCP";
inline const std::string kRested = "after a rest: create+exec+delete, TCP";
inline const std::string kCold = "fully cold: create+exec+delete, TCP";

// Configuration of each way, and the same when the built program does not know the keys.
inline constexpr const char* kWarmYaml = "pool:\n  automatic: true\n";
inline constexpr const char* kPartsYaml = "pool:\n  automatic: false\n";
inline constexpr const char* kColdYaml = "pool:\n  automatic: false\n  parts: 0\n";

class Lifecycle {
 public:
  explicit Lifecycle(Context& context) : context_(context) {}
  void add_rows();

 private:
  void add_way(const std::string& name, const std::string& label, const std::string& yaml, bool may_lack_keys);
  void add_rested();
  void add_rest(const std::string& label, const std::string& door, Server server);
  void add_command_line();
  void add_sdks();
  Daemon* start(const std::string& name, const std::string& yaml, std::string& why);

  Context& context_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Helper>> helpers_;
};

}  // namespace bench
