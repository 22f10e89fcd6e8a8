#include "promises.h"

#include <cstdarg>
#include <cstdio>

#include "density.h"
#include "exec.h"
#include "lifecycle.h"
#include "peers.h"
#include "startup.h"
#include "throughput.h"
#include "transfer.h"

namespace bench {
namespace {

class Checker {
 public:
  explicit Checker(const Rows& rows) : rows_(rows) {}

  const Row* row(const std::string& name) const {
    const Row* found = rows_.find(name);
    return found && found->measured() ? found : nullptr;
  }
  double value(const std::string& name) const {
    const Row* found = row(name);
    return found ? *found->value : NAN;
  }
  // A quantile of a row is at most `most` times the floor.
  void at_most_floors(const std::string& name, double where, double most) {
    const Row* found = row(name);
    if (!found) return;
    double ratio = found->at(where) / rows_.floor();
    say(ratio <= most, "%s, p%.0f = %.2f F (promised: at most %g)", name.c_str(), 100 * where, ratio, most);
  }
  void at_most(const std::string& what, double measured, double most, const char* unit) {
    if (!std::isnan(measured)) say(measured <= most, "%s = %.4g %s (promised: at most %g)", what.c_str(), measured, unit, most);
  }
  void at_least(const std::string& what, double measured, double least, const char* unit) {
    if (!std::isnan(measured)) say(measured >= least, "%s = %.4g %s (promised: at least %g)", what.c_str(), measured, unit, least);
  }
  __attribute__((format(printf, 3, 4))) void say(bool kept, const char* format, ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    std::vsnprintf(text, sizeof text, format, list);
    va_end(list);
    out.push_back({text, kept});
  }
  double floor() const { return rows_.floor(); }
  const Rows& rows() const { return rows_; }

  std::vector<Promise> out;

 private:
  const Rows& rows_;
};

void latency(Checker& check) {
  check.at_most_floors(kWarm, 0.5, 2.2);
  check.at_most_floors(kWarm, 0.99, 5);
  check.at_most_floors(kParts, 0.5, 3.5);
  check.at_most_floors(kRested, 0.5, 6);
  check.at_most_floors(kCold, 0.5, 6);
  const Row *cold = check.row(kCold), *bwrap = check.row(kBwrap);
  if (cold && bwrap)
    check.say(cold->at(0.5) < bwrap->at(0.5), "fully cold p50 %.2f F is ahead of bwrap p50 %.2f F", cold->at(0.5) / check.floor(),
              bwrap->at(0.5) / check.floor());
  check.at_most_floors(kExec, 0.5, 1.6);
  check.at_most_floors(kExec, 0.99, 4);
}

void throughput(Checker& check) {
  double eight = check.value(lives_row(8));
  check.at_least("whole lives a second, 8 clients", eight, 1000, "1/s");
  for (const auto& row : check.rows().all())
    if (row.name.starts_with(kSustained) && row.measured()) check.at_least(row.name, *row.value, 1000, "1/s");
  double errors = 0;
  for (const auto& row : check.rows().all())
    for (const auto& [name, value] : row.extra)
      if (row.is_ours && row.group == "throughput" && name == "errors") errors += value;
  if (!std::isnan(eight)) check.say(errors == 0, "errors in all rows of throughput: %.0f (promised: none)", errors);
  check.at_least("rate of 32 clients against that of 8", 100 * check.value(lives_row(32)) / eight, 80, "%");
  check.at_least("whole lives a second against Docker's, 8 clients", eight / check.value(kDockerRate), 100, "x");
}

void size(Checker& check) {
  check.at_most("memory of each of 10,000 idle sandboxes", check.value(memory_row(10'000)), 1.3, "MiB");
  if (const Row* create = check.row(create_row(10'000)); create && !std::isnan(check.floor()))
    check.say(create->at(0.99) <= 10 * check.floor(), "a new sandbox beside 10,000, p99 = %.2f F (promised: at most 10)",
              create->at(0.99) / check.floor());
  check.at_most("10,000 sandboxes deleted, with nothing left, after", check.value(gone_row(10'000)), 30, "s");
  check.at_most("memory of the idle daemon", check.value(kDaemonMemory), 40, "MiB");
  check.at_most("cpu of everything with 1,000 idle sandboxes", check.value(idle_row(1000)), 0.1, "%");
}

void transfer(Checker& check) {
  const Row* plain = check.row(kPlainCopy);
  for (const auto& name : {kUpload, kDownload})
    if (const Row* moved = check.row(name); moved && plain)
      check.at_least(name + ", share of a plain copy's speed", 100 * plain->at(0.5) / moved->at(0.5), 50, "%");
}

}  // namespace

std::vector<Promise> check_promises(const Rows& rows) {
  Checker check(rows);
  latency(check);
  throughput(check);
  size(check);
  transfer(check);
  return std::move(check.out);
}

}  // namespace bench
