#include "cli/table.h"

#include <algorithm>

#include "cli/sanitise.h"

namespace osb::cli {
namespace {

using Cells = std::vector<std::string>;

Cells safe(const Cells& cells) {
  Cells out;
  for (const auto& cell : cells) out.push_back(cell.empty() ? "-" : sanitise(cell));
  return out;
}

void append_line(std::string& out, const Cells& cells, const std::vector<std::size_t>& widths) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    out += cells[i];
    if (i + 1 < cells.size()) out.append(widths[i] - width_of(cells[i]) + 2, ' ');
  }
  out += '\n';
}

}  // namespace

std::string Table::render() const {
  std::vector<Cells> lines{safe(header_)};
  for (const auto& row : rows_) lines.push_back(safe(row));
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string out;
  for (const auto& line : lines) append_line(out, line, widths);
  return out;
}

}  // namespace osb::cli
