// One line on a terminal that says how far a transfer is; nothing at all where nobody looks.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace osb::cli {

class Progress {
 public:
  Progress();  // shows on stderr when that is a terminal
  ~Progress() { clear(); }
  void begin(std::string_view name, std::uint64_t size);  // size 0: unknown
  void add(std::uint64_t bytes);
  void clear();

 private:
  void show();
  bool on_;
  bool shown_ = false;
  std::string name_;
  std::uint64_t size_ = 0;
  std::uint64_t done_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace osb::cli
