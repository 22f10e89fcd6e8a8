// A command policy from its JSON text; the configuration file becomes the same object first.
#include <algorithm>
#include <boost/json/array.hpp>

#include "base/text.h"
#include "model/command_policy.h"
#include "model/glob.h"
#include "model/json.h"

namespace osb {
namespace {

namespace json = boost::json;

Error wrong(std::string field, std::string_view why) {
  auto what = cat(field, ": ", why);
  return Error(Errc::invalid_argument, std::move(what)).at(field);
}

Error unknown_member(std::string_view name, const std::string& field, const std::vector<std::string_view>& known) {
  auto close = nearest(name, known);
  std::string names;
  for (auto each : known) names += cat(names.empty() ? "" : ", ", each);
  return wrong(field, close ? cat("unknown member; did you mean ", *close, "?") : cat("unknown member; known are ", names));
}

Result<CommandAction> action_of(const json::value& value, const std::string& field) {
  const auto* text = value.if_string();
  auto action = text ? parse_command_action(std::string_view(*text)) : std::nullopt;
  if (action) return *action;
  return wrong(field, "must be allow, ask or deny");
}

Result<std::string> short_text(const json::value& value, const std::string& field) {
  const auto* text = value.if_string();
  if (!text) return wrong(field, "must be a text");
  if (text->size() > kMaxRuleText) return wrong(field, cat("has at most ", kMaxRuleText, " bytes"));
  return std::string(*text);
}

Result<> add_pattern(const json::value& value, const std::string& field, std::vector<std::string>& out) {
  const auto* text = value.if_string();
  if (!text) return wrong(field, "must be a pattern, or a list of them");
  if (auto fine = check_glob(std::string_view(*text)); !fine) return wrong(field, fine.error().what());
  out.emplace_back(*text);
  return Ok{};
}

Result<std::vector<std::string>> patterns_of(const json::value& value, const std::string& field) {
  std::vector<std::string> out;
  const auto* list = value.if_array();
  if (!list) {
    CHECK_OK(add_pattern(value, field, out));
    return out;
  }
  if (list->empty()) return wrong(field, "must not be an empty list; leave it out");
  if (list->size() > kMaxRulePatterns) return wrong(field, cat("has at most ", kMaxRulePatterns, " patterns"));
  for (std::size_t i = 0; i < list->size(); ++i) CHECK_OK(add_pattern((*list)[i], cat(field, "[", i, "]"), out));
  return out;
}

Result<CommandRule> read_rule(const json::value& value, const std::string& path) {
  static const std::vector<std::string_view> kKnown{"name", "program", "args_start", "args_any", "args_all", "action", "reason"};
  const auto* object = value.if_object();
  if (!object) return wrong(path, "must be an object with program and action");
  CommandRule rule;
  bool acts = false;
  for (const auto& member : *object) {
    std::string_view name = member.key();
    auto field = cat(path, ".", name.substr(0, 80));
    if (name == "name") {
      TRY(rule.name, short_text(member.value(), field));
    } else if (name == "reason") {
      TRY(rule.reason, short_text(member.value(), field));
    } else if (name == "action") {
      TRY(rule.action, action_of(member.value(), field));
      acts = true;
    } else if (name == "program") {
      TRY(rule.programs, patterns_of(member.value(), field));
    } else if (name == "args_start") {
      TRY(rule.args_start, patterns_of(member.value(), field));
    } else if (name == "args_any") {
      TRY(rule.args_any, patterns_of(member.value(), field));
    } else if (name == "args_all") {
      TRY(rule.args_all, patterns_of(member.value(), field));
    } else {
      return unknown_member(name, field, kKnown);
    }
  }
  if (rule.programs.empty()) return wrong(path, "needs program; \"*\" stands for every one");
  if (!acts) return wrong(path, "needs action: allow, ask or deny");
  return rule;
}

Result<std::uint32_t> seconds_of(const json::value& value, const std::string& field) {
  std::int64_t number = value.is_int64() ? value.get_int64() : -1;
  if (number < 1 || number > kMaxAskSeconds) return wrong(field, cat("must be a whole number from 1 to ", kMaxAskSeconds));
  return static_cast<std::uint32_t>(number);
}

}  // namespace

Result<CommandPolicy> parse_command_policy(const json::object& object) {
  static const std::vector<std::string_view> kKnown{"default", "unclear", "ask_timeout_seconds", "rules"};
  CommandPolicy policy;
  for (const auto& member : object) {
    std::string name(member.key());
    if (name == "default") {
      TRY(policy.otherwise, action_of(member.value(), name));
    } else if (name == "unclear") {
      TRY(policy.unclear, action_of(member.value(), name));
    } else if (name == "ask_timeout_seconds") {
      TRY(policy.ask_timeout_seconds, seconds_of(member.value(), name));
    } else if (name == "rules") {
      const auto* list = member.value().if_array();
      if (!list) return wrong("rules", "must be a list");
      if (list->size() > kMaxCommandRules) return wrong("rules", cat("has at most ", kMaxCommandRules, " rules"));
      for (std::size_t i = 0; i < list->size(); ++i) {
        TRY(auto rule, read_rule((*list)[i], cat("rules[", i, "]")));
        policy.rules.push_back(std::move(rule));
      }
    } else {
      return unknown_member(name, name.substr(0, 80), kKnown);
    }
  }
  return policy;
}

std::string rules_json(const std::vector<CommandRule>& rules) {
  std::string out = "[";
  for (const auto& rule : rules) {
    out += out.size() > 1 ? ", {" : "{";
    if (!rule.name.empty()) out += cat("\"name\": ", json_string(rule.name), ", ");
    out += "\"program\": ";
    append_json_list(out, rule.programs);
    auto add = [&](std::string_view name, const std::vector<std::string>& patterns) {
      if (patterns.empty()) return;
      out += cat(", \"", name, "\": ");
      append_json_list(out, patterns);
    };
    add("args_start", rule.args_start);
    add("args_any", rule.args_any);
    add("args_all", rule.args_all);
    out += cat(", \"action\": \"", name_of(rule.action), "\"");
    if (!rule.reason.empty()) out += cat(", \"reason\": ", json_string(rule.reason));
    out += "}";
  }
  return out += "]";
}

Result<CommandPolicy> parse_command_policy(std::string_view text) {
  if (text.size() > kMaxPolicyBytes) return wrong("policy", cat("has at most ", kMaxPolicyBytes, " bytes"));
  TRY(auto object, parse_json_object(text));
  return parse_command_policy(object);
}

}  // namespace osb
