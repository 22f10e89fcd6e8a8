// A run as people and programs read it: tables for a terminal, JSON, Markdown.
#pragma once
#include <string>
#include <vector>

#include "options.h"
#include "promises.h"
#include "row.h"

namespace bench {

struct Report {
  std::string machine, versions, date;
  bool busy = false;
  const Options& options;
  const Rows& rows;
  std::vector<Promise> promises;

  static Report of(const Context& context, std::string date);

  std::string text() const;
  std::string json() const;
  std::string markdown() const;
};

}  // namespace bench
