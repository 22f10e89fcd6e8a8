// What a run is asked to do.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "process.h"
#include "row.h"

namespace bench {

inline const std::vector<std::string> kGroups = {"lifecycle", "exec", "peers", "throughput", "startup", "transfer", "density"};

struct Options {
  bool quick = false, json = false, start_docker = false, write_docs = false;
  RoundSettings rounds;
  double seconds = 5;  // of each throughput row
  double sustain = 0;  // seconds of one more row at 8 clients; 0: none
  std::vector<int> density = {100, 1000};
  double idle_seconds = 10;  // for which idle sandboxes are watched
  std::size_t transfer_mib = 1024;
  std::set<std::string> only;   // empty: every group
  std::string out;              // folder for bench.json, bench.md and the pictures
  std::string url, key, image;  // a compatible server
  std::string command_line;     // as it was asked for

  bool wants(const std::string& group) const { return only.empty() || only.contains(group); }
};

Options parse_options(int argc, char** argv);

// What every group works with.
struct Context {
  const Options& options;
  fs::path root, build, work;
  Rows& rows;
};

}  // namespace bench
