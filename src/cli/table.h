// Rows of text in columns, for people.
#pragma once
#include <string>
#include <vector>

namespace osb::cli {

// Cells are sanitised here, so a caller passes what a sandbox or a daemon said as it is.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  std::string render() const;  // header, then rows; two spaces between columns, none at the end of a line

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace osb::cli
