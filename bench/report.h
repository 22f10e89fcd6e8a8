// A run as people and programs read it: tables for a terminal, JSON, Markdown.
#pragma once
#include <string>
#include <vector>

#include "options.h"
#include "promises.h"
#include "row.h"

namespace bench {

// Looked at before anything is measured: afterwards the load is our own.
struct Surroundings {
  std::string machine, versions, date;
  bool busy = false;

  static Surroundings now(const fs::path& build);
};

struct Report {
  Surroundings around;
  const Options& options;
  const Rows& rows;
  std::vector<Promise> promises;

  static Report of(const Context& context, Surroundings around);

  std::string text() const;
  std::string json() const;
  std::string markdown() const;
};

}  // namespace bench
