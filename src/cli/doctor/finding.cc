#include "cli/doctor/finding.h"

#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/sanitise.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

std::string painted(Verdict verdict) {
  auto colour = verdict == Verdict::ok ? Colour::green : verdict == Verdict::weak ? Colour::yellow : Colour::red;
  auto word = std::string(name_of(verdict));
  return cat(paint(colour, word, STDOUT_FILENO), std::string(8 - word.size(), ' '));
}

std::string summary(const std::vector<Finding>& findings) {
  auto fatal = std::ranges::count_if(findings, is_fatal);
  auto soft = std::ranges::count_if(findings, [](const Finding& f) { return f.verdict != Verdict::ok && !is_fatal(f); });
  if (fatal > 0)
    return cat(fatal, " required ", fatal == 1 ? "part is" : "parts are", " missing: sandboxes cannot be made here until that is fixed\n");
  if (soft > 0) return cat("sandboxes can be made here; ", soft, soft == 1 ? " part" : " parts", " could be better\n");
  return "sandboxes are fully isolated here\n";
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return "ok";
    case Verdict::weak: return "weak";
    case Verdict::missing: return "missing";
  }
  return "?";
}

bool is_fatal(const Finding& finding) { return finding.required && finding.verdict == Verdict::missing; }

std::string render_findings(const std::vector<Finding>& findings) {
  std::size_t widest = 0;
  for (const auto& finding : findings) widest = std::max(widest, width_of(finding.name));
  std::string out, part;
  for (const auto& finding : findings) {
    if (finding.part != part) out += cat(out.empty() ? "" : "\n", paint(Colour::bold, finding.part, STDOUT_FILENO), "\n");
    part = finding.part;
    out += cat("  ", painted(finding.verdict), finding.name, std::string(widest - width_of(finding.name) + 2, ' '), sanitise(finding.means),
               "\n");
    if (finding.verdict != Verdict::ok && !finding.fix.empty())
      out += cat(std::string(widest + 12, ' '), "fix: ", sanitise(finding.fix), "\n");
  }
  return cat(out, "\n", summary(findings));
}

std::string render_findings_json(const std::vector<Finding>& findings) {
  boost::json::array rows;
  for (const auto& finding : findings) {
    boost::json::object row{{"part", finding.part},
                            {"name", finding.name},
                            {"verdict", name_of(finding.verdict)},
                            {"required", finding.required},
                            {"means", finding.means}};
    if (!finding.fix.empty()) row["fix"] = finding.fix;
    rows.push_back(std::move(row));
  }
  bool healthy = std::ranges::none_of(findings, is_fatal);
  return pretty(boost::json::object{{"healthy", healthy}, {"findings", std::move(rows)}});
}

}  // namespace osb::cli
