#include "publish.h"

#include <stdexcept>

namespace bench {
namespace {

constexpr const char* kBegin = "<!-- bench:begin -->";
constexpr const char* kEnd = "<!-- bench:end -->";

std::string shown(const std::vector<NamedPicture>& pictures) {
  std::string out;
  for (const auto& picture : pictures) out += "\n![" + picture.alt + "](" + picture.file + ")\n";
  return out;
}

}  // namespace

void write_folder(const Report& report, const fs::path& folder) {
  fs::create_directories(folder);
  auto pictures = draw(report);
  for (const auto& picture : pictures) write_file(folder / picture.file, picture.svg);
  write_file(folder / "bench.json", report.json());
  write_file(folder / "bench.md", "# A run of the benchmark\n\n" + report.markdown() + shown(pictures));
}

void write_docs(const Report& report, const fs::path& root) {
  fs::path page = root / "docs/performance.md";
  std::string text = read_file(page);
  auto begin = text.find(kBegin), end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw std::runtime_error(page.string() + " has no place marked " + kBegin + " ... " + kEnd);
  auto pictures = draw(report);
  for (const auto& picture : pictures) write_file(root / "docs" / picture.file, picture.svg);
  begin += std::string(kBegin).size();
  text.replace(begin, end - begin, "\n" + shown(pictures) + "\n" + report.markdown() + "\n");
  write_file(page, text);
}

}  // namespace bench
