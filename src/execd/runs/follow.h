// A run as the response to a client: everything it has kept, then live, to its terminal event.
#pragma once
#include <memory>
#include <string_view>

#include "execd/runs/run.h"
#include "execd/sandbox.h"
#include "http/http.h"

namespace osb::execd::runs {

http::Headers event_stream_headers();

// Streams events behind number `since`, with pings while nothing happens. Returns false when the client has gone first.
// A run that has ended by the time its first events arrive is answered whole, in one write. `just_begun`: by this request,
// although it may be over already.
Task<bool> follow(std::shared_ptr<Run> run, http::Responder& responder, std::uint64_t since = 0, bool just_begun = false);

// For the routes that start runs, once the body is read. True: the request has been answered, because its
// Idempotency-Key is known (the client now follows that run from its start) or cannot be accepted. False: go on, with `key`
// for Runs::add; nothing else may come between the two.
Task<bool> answer_repeated(Sandbox& sandbox, http::Request& request, http::Responder& responder, std::string_view body, Key& key);

}  // namespace osb::execd::runs
