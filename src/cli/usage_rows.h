// What sandboxes use, as the daemon tells it, and the lines people read.
#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api.h"

namespace osb::cli {

struct UsageRow {
  std::string id;
  std::string name;  // metadata "name"
  std::string state;
  boost::json::object stats;

  std::uint64_t number(std::string_view group, std::string_view member) const;  // 0 when absent
  double cpu_percent() const;
};

// Of the named sandboxes, or of all that have processes. One that ends meanwhile is left out unless it was named.
Result<std::vector<UsageRow>> read_usage(Api& api, const std::vector<std::string>& names);

enum class UsageOrder { as_listed, cpu, memory };
void sort_usage(std::vector<UsageRow>& rows, UsageOrder order);
std::string usage_table(const std::vector<UsageRow>& rows);

}  // namespace osb::cli
