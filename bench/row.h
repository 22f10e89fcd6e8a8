// A row of the report: samples of a latency, or one measured value; and the rounds that take the samples in turn.
#pragma once
#include <cmath>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

double quantile(std::vector<double> samples, double at);  // NAN when there are none

struct Row {
  std::string group, name;
  std::function<double()> once{};  // microseconds; empty: filled by another row or by a measurement
  int every = 1;                   // sampled in every n-th round
  bool is_ours = false;
  bool leaves_network = false;  // a network namespace, which a kernel worker takes apart afterwards
  std::string unit = "ms";
  std::vector<double> samples{};                        // microseconds
  std::optional<double> value{};                        // of a row that is one number, in `unit`
  double ratio_to = NAN;                                // what `value` is compared with, in the same unit
  std::vector<std::pair<std::string, double>> extra{};  // further numbers of a value row, by name with unit
  std::string unusable{}, note{};

  bool is_part() const { return name.starts_with("  "); }
  bool measured() const { return value.has_value() || !samples.empty(); }
  double at(double where) const { return quantile(samples, where); }
};

class Rows {
 public:
  Row& add(std::string group, std::string name, std::function<double()> once = nullptr, int every = 1);
  Row& ours(std::string group, std::string name, std::function<double()> once = nullptr, int every = 1);
  Row& value(std::string group, std::string name, std::string unit, double number);
  const Row* find(const std::string& name) const;
  std::deque<Row>& all() { return rows_; }
  const std::deque<Row>& all() const { return rows_; }
  double floor() const;  // p50 of the floor in microseconds

 private:
  std::deque<Row> rows_;  // rows are referred to by address while more are added
};

inline const std::string kFloorName = "floor: busybox echo, bare";

struct RoundSettings {
  int rounds = 200;
  double seconds = 240;   // no round begins after this
  int burst = 3;          // samples in a row of a row that takes part in every round: the first finds cold caches, the others do not
  double pause_ms = 3;    // before every sample: requests in production are not back to back
  double settle_ms = 10;  // and before a turn that follows one that made sandboxes: what those leave to do is not this row's
  double network_settle_ms = 60;
};
// First a few samples of each row that do not count (it works, its files are in memory), then rounds, every other one in the opposite
// order: what a row leaves in the caches is not always the same row's luck.
void run_rounds(Rows& rows, const RoundSettings& settings);

}  // namespace bench
