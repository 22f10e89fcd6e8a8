// From a program's pipes to the events of its run.
#pragma once
#include <string>

#include "execd/output_source.h"
#include "execd/runs/run.h"

namespace osb::execd::runs {

// Reads both pipes line by line into `run` until the source has ended and what it wrote is out. `batch` begins with events
// that are not kept yet and ends with the last ones, so that a short run is kept, and sent, in one piece.
// `raw`: not lines but the bytes as they come, cut between characters where they are UTF-8.
Task<void> relay_output(OutputSource& source, Run& run, std::string& batch, bool raw = false);

}  // namespace osb::execd::runs
