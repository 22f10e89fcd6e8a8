#include "proxy/command_request.h"

#include "base/text.h"
#include "model/json.h"

namespace osb::proxy {
namespace {

using boost::json::object;
using Judged = CommandRoutes::Judged;

// Absent and null are the same to execd; nullopt = it is there and no text.
std::optional<std::string> text_in(const object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  if (!value || value->is_null()) return std::string();
  if (!value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

void take_variables(Command& command, const object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  if (!value || !value->is_object()) return;
  for (const auto& member : value->get_object()) command.variables.emplace_back(member.key());
}

Command argv_in(const object& from, std::string_view body, std::string_view variables) {
  const auto* list = from.if_contains("argv");
  if (!list || !list->is_array()) return Command::not_readable(std::string(body));
  Command command = Command::of_argv({});
  for (const auto& word : list->get_array()) {
    if (!word.is_string()) return Command::not_readable(std::string(body));
    command.argv.emplace_back(word.get_string());
  }
  const auto* tty = from.if_contains("tty");
  command.typed = tty && !tty->is_null();
  take_variables(command, from, variables);
  return command;
}

Command line_in(const object& from, std::string_view body) {
  auto text = text_in(from, "command");
  bool listed = from.contains("argv");
  if (!text || (listed && !text->empty())) return Command::not_readable(std::string(body));
  if (listed) return argv_in(from, body, "envs");
  auto command = Command::of_line(*std::move(text));
  take_variables(command, from, "envs");
  return command;
}

Command code_in(const object& from, std::string_view body) {
  auto text = text_in(from, "code");
  if (!text) return Command::not_readable(std::string(body));
  const auto* context = from.if_contains("context");
  if (!context || context->is_null()) return Command::of_code("command", *std::move(text));
  if (!context->is_object()) return Command::not_readable(std::string(body));
  auto language = text_in(context->get_object(), "language");
  auto id = text_in(context->get_object(), "id");
  if (!language || !id) return Command::not_readable(std::string(body));
  if (!id->empty()) return Command::of_code({}, *std::move(text));  // whoever knows the context fills it in
  return Command::of_code(language->empty() ? "command" : to_lower(*language), *std::move(text));
}

Command context_in(const object& from, std::string_view body) {
  auto language = text_in(from, "language");
  if (!language || language->empty()) return Command::not_readable(std::string(body));
  return Command::of_code(to_lower(*language), {});
}

}  // namespace

Command command_of(Judged judged, std::string_view body) {
  if (judged == Judged::attach) return Command::of_terminal();
  if (judged == Judged::terminal && trim(body).empty()) return Command::of_terminal();
  auto object = parse_json_object(body, {.bytes = kCommandBodyBytes});
  if (!object) return Command::not_readable(std::string(body));
  switch (judged) {
    case Judged::line: return line_in(*object, body);
    case Judged::argv: return argv_in(*object, body, "env");
    case Judged::code: return code_in(*object, body);
    case Judged::context: return context_in(*object, body);
    case Judged::terminal: {
      auto line = text_in(*object, "command");
      return line ? Command::of_terminal(*std::move(line)) : Command::not_readable(std::string(body));
    }
    case Judged::attach:
    case Judged::nothing: break;
  }
  return Command::not_readable(std::string(body));
}

std::string context_of(std::string_view body) {
  auto object = parse_json_object(body, {.bytes = kCommandBodyBytes});
  const auto* context = object ? object->if_contains("context") : nullptr;
  if (!context || !context->is_object()) return {};
  return text_in(context->get_object(), "id").value_or(std::string());
}

}  // namespace osb::proxy
