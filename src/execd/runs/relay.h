// From a program's pipes to the events of its run.
#pragma once
#include <array>
#include <string>

#include "execd/lines.h"
#include "execd/output_source.h"
#include "execd/runs/run.h"

namespace osb::execd::runs {

// Reads both pipes line by line into events of `run`. A batch begins with events that are not kept yet and ends with the last
// ones, so that a short run is kept, and sent, in one piece. `raw`: not lines but the bytes as they come, cut between
// characters where they are UTF-8. Source and run outlive the relay.
class Relay {
 public:
  Relay(OutputSource& source, Run& run, bool raw) : source_(source), run_(run), lanes_{Lane(source.out(), raw), Lane(source.err(), raw)} {}

  // Of a source that has ended: what is in its pipes, without waiting. False: there is more than one read of each brings, and
  // to_the_end() goes on.
  bool at_once(std::string& batch);
  // Until the source has ended and what it wrote is out.
  Task<void> to_the_end(std::string& batch);

 private:
  // One of the two outputs on its way to events.
  class Lane {
   public:
    Lane(OutputPipe& pipe, bool raw) : pipe_(pipe), raw_(raw) {}
    bool fill(std::string& batch, Run& run, std::string_view type);
    bool emptied() const { return pipe_.emptied() && (raw_ || pending_.empty()); }
    void close_soon();
    void finish(std::string& batch, Run& run, std::string_view type);

   private:
    bool fill_raw(std::string& batch, Run& run, std::string_view type);
    void append_lines(std::string_view& bytes, std::string& batch, Run& run, std::string_view type);

    OutputPipe& pipe_;
    LineSplitter lines_;
    std::string pending_;  // read, but the batch was full, or the beginning of a character
    bool raw_;
    std::size_t left_ = ~std::size_t{0};
  };
  bool fill(std::string& batch);
  void finish(std::string& batch);

  OutputSource& source_;
  Run& run_;
  std::array<Lane, 2> lanes_;
};

}  // namespace osb::execd::runs
