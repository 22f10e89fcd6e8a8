#include "cli/spec.h"

namespace osb::cli {
namespace {

constexpr std::string_view kUsageCode = "USAGE";

}  // namespace

std::string_view OptionSpec::long_name() const {
  auto at = flags.rfind("--");
  return at == std::string_view::npos ? flags : flags.substr(at + 2);
}

std::string_view OptionSpec::short_name() const {
  return flags.size() > 2 && flags[1] != '-' && flags[2] == ',' ? flags.substr(1, 1) : std::string_view{};
}

std::string Args::get(std::string_view long_name, std::string_view otherwise) const {
  auto found = values_.find(long_name);
  return found == values_.end() || found->second.empty() ? std::string(otherwise) : found->second.back();
}

const std::vector<std::string>& Args::all(std::string_view long_name) const {
  static const std::vector<std::string> kNone;
  auto found = values_.find(long_name);
  return found == values_.end() ? kNone : found->second;
}

Error usage_error(std::string what, std::string_view hint) {
  return Error(Errc::invalid_argument, std::move(what)).with_code(kUsageCode).with_hint(hint);
}

bool is_usage_error(const Error& error) { return error.code() == kUsageCode; }

}  // namespace osb::cli
