#include "report.h"

#include <cstdio>

#include "machine.h"
#include "print.h"

namespace bench {
namespace {

const std::vector<std::string> kOrder = {"floor", "lifecycle", "exec", "peers", "throughput", "startup", "transfer", "density"};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

std::string number(double value) { return std::isfinite(value) ? print("%.6g", value) : "null"; }

// As people write it: whole numbers whole, others with three digits.
std::string people(double value) {
  return std::abs(value) >= 100 || value == std::round(value) ? print("%.0f", value) : print("%.3g", value);
}

std::string extras(const Row& row) {
  std::string out;
  for (const auto& [name, value] : row.extra) out += (out.empty() ? "" : ", ") + name + " " + people(value);
  return out;
}

// What is said behind the numbers.
std::string remark(const Row& row) {
  std::string out = extras(row);
  for (const auto& more : {row.note, row.unusable.empty() || !row.measured() ? "" : "stopped: " + row.unusable})
    if (!more.empty()) out += (out.empty() ? "" : "; ") + more;
  return out;
}

// A number of its own, or samples of a time: the two have different columns.
bool is_value(const Row& row) { return row.value || (row.samples.empty() && (row.group == "throughput" || row.group == "density")); }

std::string text_line(const Row& row, double floor) {
  const char* name = row.name.c_str();
  if (row.value) {
    std::string ratio = std::isnan(row.ratio_to) ? "" : print("%7.3f", *row.value / row.ratio_to);
    return print("%-50s %9s %-5s %7s  %s\n", name, people(*row.value).c_str(), row.unit.c_str(), ratio.c_str(), remark(row).c_str());
  }
  if (row.samples.empty()) return print("%-50s %s\n", name, row.unusable.empty() ? "no sample" : row.unusable.c_str());
  return print("%-50s %8.3f %8.3f %8.3f %7.2f %7.2f %6zu  %s\n", name, row.at(0.5) / 1e3, row.at(0.99) / 1e3, row.at(1) / 1e3,
               row.at(0.5) / floor, row.at(0.99) / floor, row.samples.size(), remark(row).c_str());
}

std::string json_row(const Row& row, double floor) {
  std::string out = "{\"name\": " + quoted(row.name.substr(row.name.find_first_not_of(' '))) + ", \"group\": " + quoted(row.group) +
                    ", \"unit\": " + quoted(row.unit) + ", \"ours\": " + (row.is_ours ? "true" : "false") +
                    ", \"part\": " + (row.is_part() ? "true" : "false");
  if (row.value)
    out += ", \"value\": " + number(*row.value) + ", \"ratio\": " + number(*row.value / row.ratio_to);
  else if (!row.samples.empty())
    out += ", \"p50\": " + number(row.at(0.5) / 1e3) + ", \"p99\": " + number(row.at(0.99) / 1e3) +
           ", \"max\": " + number(row.at(1) / 1e3) + ", \"ratio\": " + number(row.at(0.5) / floor) +
           ", \"ratio_p99\": " + number(row.at(0.99) / floor) + ", \"n\": " + std::to_string(row.samples.size());
  if (!row.measured() || !row.unusable.empty()) out += ", \"unusable\": " + quoted(row.unusable.empty() ? "no sample" : row.unusable);
  for (const auto& [name, value] : row.extra) out += ", " + quoted(name) + ": " + number(value);
  if (!row.note.empty()) out += ", \"note\": " + quoted(row.note);
  return out + "}";
}

std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string markdown_line(const Row& row, double floor) {
  std::string name = escaped(row.is_part() ? "· " + row.name.substr(2) : row.is_ours ? "**" + row.name + "**" : row.name);
  std::string said = escaped(remark(row));
  if (row.value) {
    std::string ratio = std::isnan(row.ratio_to) ? "" : print("%.3f", *row.value / row.ratio_to);
    return "| " + name + " | " + people(*row.value) + " " + row.unit + " | " + ratio + " | " + said + " |\n";
  }
  if (row.samples.empty())
    return "| " + name + (is_value(row) ? " | - | | " : " | - | | | | | | ") + escaped(row.unusable.empty() ? "no sample" : row.unusable) +
           " |\n";
  return "| " + name + " | " +
         print("%.3f | %.3f | %.3f | %.2f | %.2f | %zu", row.at(0.5) / 1e3, row.at(0.99) / 1e3, row.at(1) / 1e3, row.at(0.5) / floor,
               row.at(0.99) / floor, row.samples.size()) +
         " | " + said + " |\n";
}

}  // namespace

Surroundings Surroundings::now(const fs::path& build) {
  return {.machine = machine_name(), .versions = bench::versions(build), .date = now_text(), .busy = is_busy()};
}

Report Report::of(const Context& context, Surroundings around) {
  return {.around = std::move(around), .options = context.options, .rows = context.rows, .promises = check_promises(context.rows)};
}

std::string Report::text() const {
  std::string out = around.machine + "\n" + around.versions + "\n" + options.command_line + ", " + around.date + "\n";
  for (const auto& group : kOrder) {
    std::string times, values;
    for (const auto& row : rows.all())
      if (row.group == group) (is_value(row) ? values : times) += text_line(row, rows.floor());
    if (!times.empty())
      out += print("\n%-50s %8s %8s %8s %7s %7s %6s\n", (group + " (ms)").c_str(), "p50", "p99", "max", "p50/F", "p99/F", "n") + times;
    if (!values.empty()) out += print("\n%-50s %9s %-5s %7s\n", group.c_str(), "value", "", "/floor") + values;
  }
  out += "\n";
  if (around.busy) out += "This machine was busy when the run began: the ratios mean little. Stop what else runs and try again.\n";
  for (const auto& promise : promises) out += (promise.kept ? "kept  : " : "MISSED: ") + promise.text + "\n";
  return out;
}

std::string Report::json() const {
  std::string out = "{\"machine\": " + quoted(around.machine) + ",\n \"versions\": " + quoted(around.versions) +
                    ",\n \"date\": " + quoted(around.date) + ",\n \"command\": " + quoted(options.command_line) +
                    ",\n \"busy\": " + (around.busy ? "true" : "false") + ",\n";
  out += " \"settings\": {\"quick\": " + std::string(options.quick ? "true" : "false") +
         ", \"rounds\": " + std::to_string(options.rounds.rounds) + ", \"pause_ms\": " + number(options.rounds.pause_ms) +
         ", \"seconds\": " + number(options.seconds) + ", \"sustain\": " + number(options.sustain) +
         ", \"floor_ms\": " + number(rows.floor() / 1e3) + "},\n \"rows\": [";
  bool first = true;
  for (const auto& row : rows.all()) out += (std::exchange(first, false) ? "\n  " : ",\n  ") + json_row(row, rows.floor());
  out += "\n ],\n \"promises\": [";
  first = true;
  for (const auto& promise : promises)
    out += (std::exchange(first, false) ? "\n  " : ",\n  ") + ("{\"text\": " + quoted(promise.text)) +
           ", \"kept\": " + (promise.kept ? "true}" : "false}");
  return out + "\n ]}\n";
}

std::string Report::markdown() const {
  std::string out = "`" + options.command_line + "`, " + around.date + ". F = " + print("%.3f", rows.floor() / 1e3) + " ms.  \n" +
                    around.machine + ".  \n" + around.versions + ".\n";
  for (const auto& group : kOrder) {
    std::string lines, values;
    for (const auto& row : rows.all())
      if (row.group == group) (is_value(row) ? values : lines) += markdown_line(row, rows.floor());
    if (lines.empty() && values.empty()) continue;
    out += "\n### " + std::string(1, static_cast<char>(group[0] - 32)) + group.substr(1) + "\n";
    if (!lines.empty()) out += "\n| milliseconds | p50 | p99 | max | p50/F | p99/F | n | |\n|---|--:|--:|--:|--:|--:|--:|---|\n" + lines;
    if (!values.empty()) out += "\n| | value | of the floor | |\n|---|--:|--:|---|\n" + values;
  }
  out += "\n### Promises\n\n| promise | |\n|---|---|\n";
  for (const auto& promise : promises) out += "| " + escaped(promise.text) + " | " + (promise.kept ? "kept" : "**missed**") + " |\n";
  return out;
}

}  // namespace bench
