// Work: something that may take long on the one thread, done in short steps between which everything else runs.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"

namespace osb::execd::files {

class Work {
 public:
  virtual ~Work() = default;
  // One short piece, well below a millisecond; true when there is no more to do.
  virtual Result<bool> step() = 0;
  virtual std::string take_result() { return {}; }  // JSON, or nothing to say
  // What a client is told when the time is over before the work is.
  virtual std::chrono::seconds limit() const = 0;
  virtual Error late() const = 0;
};

// What a request leads to: an answer at once, or work that ends in one.
struct Outcome {
  std::string json = {};  // empty: 200 without a body
  std::unique_ptr<Work> work = {};
};

}  // namespace osb::execd::files
