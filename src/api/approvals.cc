#include "api/approvals.h"

#include <chrono>

#include "api/json_text.h"
#include "model/json.h"

namespace osb::api {
namespace {

// Also how long a client that vanished without a word is kept.
constexpr auto kAlive = std::chrono::seconds(10);

std::string event_of(const proxy::Question& question) {
  bool waits = question.state == proxy::QuestionState::waiting;
  return cat("event: ", waits ? "asked" : "settled", "\ndata: ", approval_json(question), "\n\n");
}

http::Headers stream_headers(http::Headers headers) {
  headers.add("Content-Type", "text/event-stream");
  headers.add("Cache-Control", "no-cache");
  headers.add("X-Accel-Buffering", "no");
  return headers;
}

}  // namespace

std::string approval_json(const proxy::Question& question) {
  ObjectText text;
  text.add("id", question.id).add("session_id", question.sandbox).add("command", question.command).add("rule", question.rule);
  text.add_unless_empty("part", question.part).add_unless_empty("reason", question.reason).add("state", name_of(question.state));
  text.add_unless_empty("asked_by", question.asker).add("asked_at", format_rfc3339(question.asked_at));
  text.add("expires_at", format_rfc3339(question.expires_at)).add_unless_empty("answered_by", question.answered_by);
  if (question.answered_at.micros != 0) text.add("answered_at", format_rfc3339(question.answered_at));
  text.add_unless_empty("comment", question.comment);
  return std::move(text).done();
}

std::string approvals_json(const std::vector<proxy::Question>& questions) {
  std::string list;
  for (const auto& question : questions) list += cat(list.empty() ? "" : ",", approval_json(question));
  return cat("{\"approvals\":[", list, "]}");
}

Result<ApprovalAnswer> parse_approval_answer(std::string_view body) {
  TRY(auto object, parse_json_object(body));
  const auto* answer = object.if_contains("answer");
  bool text = answer && answer->is_string();
  ApprovalAnswer out;
  out.allow = text && answer->get_string() == "allow";
  if (!text || (!out.allow && answer->get_string() != "deny"))
    return Error(Errc::invalid_argument, "answer must be allow or deny").with_code("COMMAND::INVALID_ANSWER").at("answer");
  const auto* comment = object.if_contains("comment");
  if (!comment || comment->is_null()) return out;
  if (!comment->is_string() || comment->get_string().size() > proxy::kMaxCommentBytes)
    return Error(Errc::invalid_argument, cat("comment must be a text of at most ", proxy::kMaxCommentBytes, " bytes"))
        .with_code("COMMAND::INVALID_ANSWER")
        .at("comment");
  out.comment = comment->get_string();
  return out;
}

Task<Result<>> watch_approvals(proxy::Approvals& approvals, Caller caller, http::Responder& client, http::Headers extra) {
  auto seen = approvals.changes();
  std::string first = ": approvals\n\n";
  for (const auto& question : approvals.list(caller, true)) first += event_of(question);
  auto sent = co_await client.begin(200, stream_headers(std::move(extra)), first);
  while (sent && !approvals.stopping()) {
    co_await approvals.wait_change(seen, kAlive);
    std::string news;
    for (const auto& question : approvals.changed_since(seen, caller)) news += event_of(question);
    seen = approvals.changes();
    sent = co_await client.chunk(news.empty() ? std::string_view(": alive\n\n") : std::string_view(news));
  }
  if (sent) [[maybe_unused]]
    auto ended = co_await client.end();
  co_return Ok{};
}

}  // namespace osb::api
