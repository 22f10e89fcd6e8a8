#include "row.h"

#include <algorithm>
#include <stdexcept>

#include "interrupt.h"
#include "process.h"

namespace bench {
namespace {

void sample(Row& row, double pause) {
  pause_ms(pause);
  try {
    double took = row.once();
    row.samples.push_back(took);
  } catch (const std::exception& error) {
    row.unusable = error.what();
  }
}

bool takes_part(const Row& row) { return row.once && row.unusable.empty(); }

}  // namespace

double quantile(std::vector<double> samples, double at) {
  if (samples.empty()) return NAN;
  std::ranges::sort(samples);
  return samples[std::min(samples.size() - 1, static_cast<std::size_t>(at * static_cast<double>(samples.size())))];
}

Row& Rows::add(std::string group, std::string name, std::function<double()> once, int every) {
  return rows_.emplace_back(Row{.group = std::move(group), .name = std::move(name), .once = std::move(once), .every = every});
}

Row& Rows::ours(std::string group, std::string name, std::function<double()> once, int every) {
  Row& row = add(std::move(group), std::move(name), std::move(once), every);
  row.is_ours = true;
  return row;
}

Row& Rows::value(std::string group, std::string name, std::string unit, double number) {
  Row& row = add(std::move(group), std::move(name));
  row.unit = std::move(unit);
  row.value = number;
  return row;
}

const Row* Rows::find(const std::string& name) const {
  auto at = std::ranges::find(rows_, name, &Row::name);
  return at == rows_.end() ? nullptr : &*at;
}

double Rows::floor() const {
  const Row* row = find(kFloorName);
  return row ? row->at(0.5) : NAN;
}

void run_rounds(Rows& rows, const RoundSettings& settings) {
  for (auto& row : rows.all()) {
    int tries = row.every > 1 ? 1 : 5;
    for (int turn = 0; turn < tries && takes_part(row); ++turn) sample(row, settings.pause_ms);
  }
  for (auto& row : rows.all()) row.samples.clear();
  auto start = Clock::now();
  double unsettled = 0;
  auto take_turn = [&](Row& row) {
    pause_ms(unsettled);
    for (int turn = 0; turn < (row.every == 1 ? settings.burst : 1) && takes_part(row); ++turn) sample(row, settings.pause_ms);
    bool made_some = row.group == "lifecycle" || row.group == "peers";
    unsettled = row.leaves_network ? settings.network_settle_ms : made_some ? settings.settle_ms : 0;
  };
  for (int round = 0; round < settings.rounds && seconds_since(start) < settings.seconds; ++round) {
    std::vector<Row*> order;
    for (auto& row : rows.all())
      if (round % row.every == 0 && takes_part(row)) order.push_back(&row);
    if (round % 2 == 1) std::ranges::reverse(order);
    for (auto* row : order)
      if (takes_part(*row)) take_turn(*row);
  }
}

}  // namespace bench
