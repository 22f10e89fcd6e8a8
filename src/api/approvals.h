// Approvals on the wire, for every door that has them: JSON of a question, the body of an answer, the stream of both.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/result.h"
#include "http/http.h"
#include "model/caller.h"
#include "proxy/approvals.h"

namespace osb::api {

std::string approval_json(const proxy::Question& question);
std::string approvals_json(const std::vector<proxy::Question>& questions);  // {"approvals":[...]}

struct ApprovalAnswer {
  bool allow = false;
  std::string comment;
};
// {"answer":"allow"|"deny","comment"?}
Result<ApprovalAnswer> parse_approval_answer(std::string_view body);

// Server-sent events "asked" and "settled", each with an approval; first those that wait. Ends when the client goes or the server stops.
// `extra`: further fields of the answer's head.
Task<Result<>> watch_approvals(proxy::Approvals& approvals, Caller caller, http::Responder& client, http::Headers extra = {});

}  // namespace osb::api
