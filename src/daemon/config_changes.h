// What a reload changes, and what of it waits for a restart.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config.h"

namespace osb::daemon {

// A key whose new value holds as soon as App::apply() has it. Every other key, a new one too, needs a restart.
bool is_live(std::string_view path);

struct ConfigChange {
  std::string_view path;  // of the table
  std::string from;
  std::string to;
  bool restart = false;
};

// The values in force, as the table shows them: never a secret.
class RunningConfig {
 public:
  explicit RunningConfig(const Config& config);
  // The differences, in the order of the table. Those that are live are in force from now on; the others are told again next time.
  std::vector<ConfigChange> take(const Config& config);

 private:
  std::map<std::string_view, std::string> shown_;
};

std::string changes_json(const std::vector<ConfigChange>& changes);  // {"changes":[{"key","from","to","restart"}]}

}  // namespace osb::daemon
