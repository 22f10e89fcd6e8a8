// spec/sessions.yaml and the table of routes say the same.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "api/sessions/routes.h"
#include "base/text.h"

namespace osb::api::sessions {
namespace {

std::set<std::string> operations_in_spec() {
  std::string here = __FILE__;
  std::ifstream file(here.substr(0, here.rfind("/src/api/")) + "/spec/sessions.yaml");
  std::set<std::string> out;
  std::string line, path;
  while (std::getline(file, line) && line != "components:") {
    std::string_view text = line;
    if (text.starts_with("  /")) path = text.substr(2, text.rfind(':') - 2);
    for (std::string_view method : {"GET", "POST", "PUT", "DELETE"})
      if (text == cat("    ", to_lower(method), ":")) out.insert(cat(method, " ", path));
  }
  return out;
}

TEST(SessionSpec, NamesEveryRouteAndNoOther) {
  std::set<std::string> table;
  for (const auto& route : routes()) table.insert(cat(route.method, " ", route.pattern));
  EXPECT_EQ(operations_in_spec(), table);
}

}  // namespace
}  // namespace osb::api::sessions
