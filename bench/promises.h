// What docs/promises.md promises about speed and size, checked against the rows of a run.
#pragma once
#include <string>
#include <vector>

#include "row.h"

namespace bench {

struct Promise {
  std::string text;  // with the number that was measured
  bool kept = false;
};

// Only those whose rows were measured in this run.
std::vector<Promise> check_promises(const Rows& rows);

}  // namespace bench
