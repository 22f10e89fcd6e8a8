// spec/lifecycle.yaml and the table of routes say the same.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "api/v1/routes.h"
#include "base/text.h"

namespace osb::api {
namespace {

std::string spec_path() {
  std::string here = __FILE__;
  return here.substr(0, here.rfind("/src/api/")) + "/spec/lifecycle.yaml";
}

// "GET /sandboxes" of every operation; aliases of another path's item count as its GET.
std::set<std::string> operations_in_spec() {
  std::set<std::string> out;
  std::ifstream file(spec_path());
  std::string line, path;
  while (std::getline(file, line) && line != "components:") {
    std::string_view text = line;
    if (text.starts_with("  /")) {
      path = text.substr(2, text.rfind(':') - 2);
      if (text.find(": *") != std::string_view::npos) {
        path = text.substr(2, text.find(": *") - 2);
        out.insert(cat("GET ", path));
      } else if (auto anchor = text.find(": &"); anchor != std::string_view::npos) {
        path = text.substr(2, anchor - 2);
      }
    }
    for (std::string_view method : {"get", "post", "put", "patch", "delete"}) {
      std::string name;
      for (char c : method) name += static_cast<char>(c - 'a' + 'A');
      if (text.starts_with(cat("    ", method, ":"))) out.insert(cat(name, " ", path));
    }
  }
  return out;
}

TEST(Spec, NamesEveryRouteAndNoOther) {
  std::set<std::string> routes;
  for (const auto& route : v1::routes()) routes.insert(cat(route.method == "*" ? "GET" : route.method, " ", route.pattern));
  EXPECT_EQ(operations_in_spec(), routes);
}

}  // namespace
}  // namespace osb::api
