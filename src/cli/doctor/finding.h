// What doctor says about one part of the host.
#pragma once
#include <string>
#include <vector>

namespace osb::cli {

enum class Verdict { ok, weak, missing };

struct Finding {
  std::string part;  // "Namespaces": findings of one part stand together
  std::string name;  // "user namespace"
  Verdict verdict = Verdict::ok;
  bool required = true;  // without it no sandbox is made; a weak or optional part never fails doctor
  std::string means;     // what it gives, or what its absence takes away
  std::string fix;       // the one command or setting; empty = nothing to do
};

std::string_view name_of(Verdict verdict);
bool is_fatal(const Finding& finding);

std::string render_findings(const std::vector<Finding>& findings);  // for people
std::string render_findings_json(const std::vector<Finding>& findings);

}  // namespace osb::cli
