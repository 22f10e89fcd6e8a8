// One request to one backend: the answer streams to the client as it comes, nothing is collected.
#pragma once
#include "http/http.h"
#include "proxy/watch.h"

namespace osb::proxy {

struct ForwardOptions {
  bool head_request = false;     // the answer has a head only
  bool upgrade = false;          // a 101 is expected; otherwise it is a protocol error
  bool head_with_first = false;  // the backend commits its head with the first bytes of the body: send them in one write
  bool watch_client = false;     // a client that goes away ends the exchange at once; only for requests without body or upgrade
  Watch* watch = nullptr;        // sees what comes back
};

// Sends an answer of our own. That the client may have gone meanwhile is nobody's failure.
Task<Result<>> answer(http::Responder& client, http::Response response);

// The status that was relayed. An error comes back only while the client has seen nothing; a break after that ends the
// client's connection without a proper end, so that it cannot take half an answer for a whole one.
Task<Result<int>> forward(http::ClientConnection& backend, http::ClientRequest outgoing, http::Responder& client, ForwardOptions options);

}  // namespace osb::proxy
