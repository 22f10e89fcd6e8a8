#include "pictures.h"

#include <algorithm>
#include <cstdio>

#include "density.h"
#include "svg.h"
#include "throughput.h"

namespace bench {
namespace {

std::string rounded(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

Kind kind_of(const Row& row) { return row.group == "floor" ? Kind::floor : row.is_ours ? Kind::ours : Kind::peer; }

std::string where(const Report& report) {
  return report.around.machine.substr(0, report.around.machine.find(", load")) + ", " + report.around.date.substr(0, 10);
}

// Names as the picture needs them: its title says what every row does.
std::string short_name(std::string name) {
  for (const char* part : {": create+exec+delete", ": create+run+kill", ": create+run+delete", ": create+start+wait+rm"})
    if (auto at = name.find(part); at != std::string::npos) name.erase(at, std::string(part).size());
  return name.size() > 42 ? name.substr(0, 40) + "..." : name;
}

Bar latency_bar(const Row& row, double floor) {
  double p50 = row.at(0.5) / 1e3;
  std::string said = rounded(p50 < 10 ? "%.2f ms" : p50 < 100 ? "%.1f ms" : "%.0f ms", p50);
  double ratio = row.at(0.5) / floor;
  return {short_name(row.name), p50, row.at(0.99) / 1e3, said + rounded(ratio < 10 ? "  (%.1f F)" : "  (%.0f F)", ratio), kind_of(row)};
}

// Everything that says hello once, the quickest first, ours and others' alike.
Picture latencies(const Report& report) {
  Picture picture{.title = "One hello: create, run, delete",
                  .subtitle = "bar: p50, line: p99; F: a bare spawn in the same run. " + where(report),
                  .axis = "milliseconds, logarithmic; shorter is better",
                  .bars = {}};
  std::vector<Bar> absent;
  for (const auto& row : report.rows.all()) {
    bool shown = row.name == kFloorName || row.group == "lifecycle" || row.group == "peers";
    if (!shown || row.is_part()) continue;
    if (row.samples.empty())
      absent.push_back({short_name(row.name), 0, 0, row.unusable.substr(0, 62), kind_of(row)});
    else
      picture.bars.push_back(latency_bar(row, report.rows.floor()));
  }
  std::ranges::sort(picture.bars, {}, &Bar::value);
  picture.bars.insert(picture.bars.end(), absent.begin(), absent.end());
  return picture;
}

double extra_of(const Row& row, const std::string& name) {
  for (const auto& [key, value] : row.extra)
    if (key == name) return value;
  return NAN;
}

Picture rates(const Report& report) {
  const Row* floor = report.rows.find(kSpawnRate);
  Picture picture{.title = "Whole lives a second, by number of clients",
                  .subtitle = (floor && floor->value ? "bare spawns on all cores: " + rounded("%.0f", *floor->value) + " a second. " : "") +
                              where(report),
                  .axis = "create + exec + delete, a second",
                  .bars = {},
                  .line = 1000,
                  .line_text = "promised at 8 clients"};
  auto add = [&](const std::string& name, const std::string& label) {
    const Row* row = report.rows.find(name);
    if (!row || !row->value) return;
    picture.bars.push_back(
        {label, std::round(*row->value * 10) / 10, 0, "p99 " + rounded("%.3g ms", extra_of(*row, "p99_ms")), kind_of(*row)});
    if (*row->value >= 100) picture.bars.back().value = std::round(*row->value);
  };
  for (int clients : {1, 2, 4, 8, 32}) add(lives_row(clients), std::to_string(clients) + (clients == 1 ? " client" : " clients"));
  for (const auto& row : report.rows.all())
    if (row.name.starts_with(kSustained)) add(row.name, "8, " + row.name.substr(kSustained.size()));
  add(kPoolOffRate, "8, no pool");
  add(kDockerRate, "Docker, 8");
  return picture;
}

Picture sizes(const Report& report) {
  Picture picture{.title = "Memory of an idle sandbox, by how many there are",
                  .subtitle = "what the machine lost to them, shared equally. " + where(report),
                  .axis = "MiB for each",
                  .bars = {},
                  .line = 1.3,
                  .line_text = "promised for 10,000"};
  for (int count : {100, 1000, 10'000}) {
    const Row *row = report.rows.find(memory_row(count)), *create = report.rows.find(create_row(count));
    if (!row || !row->value) continue;
    std::string said = create && create->measured() ? "one more: p99 " + rounded("%.1f ms", create->at(0.99) / 1e3) : "";
    picture.bars.push_back({row->name.substr(0, row->name.find(':')), std::round(*row->value * 100) / 100, 0, said, Kind::ours});
  }
  return picture;
}

}  // namespace

std::vector<NamedPicture> draw(const Report& report) {
  std::vector<NamedPicture> out;
  if (Picture picture = latencies(report); picture.bars.size() > 2)
    out.push_back({"performance-latency.svg", "Latency of one hello, ours and others", lying_bars(picture)});
  if (Picture picture = rates(report); !picture.bars.empty())
    out.push_back({"performance-throughput.svg", "Lifecycles a second by number of clients", standing_bars(picture)});
  if (Picture picture = sizes(report); !picture.bars.empty())
    out.push_back({"performance-density.svg", "Memory of an idle sandbox", standing_bars(picture)});
  return out;
}

}  // namespace bench
