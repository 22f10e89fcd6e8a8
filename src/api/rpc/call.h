// One call of a method, whatever brought it: Connect or gRPC-Web over HTTP/1.1, or gRPC through its own program.
//
// Messages are bytes in the call's form. Neither side keeps more than one message: whoever sends waits until it was taken.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "api/rpc/messages.h"
#include "async/task.h"
#include "model/caller.h"
#include "session/service.h"

namespace osb::api::rpc {

class In {
 public:
  virtual ~In() = default;
  // nullopt: the caller has said all it had to say. Errors: it is gone, too slow, or what it sent is no message.
  virtual Task<Result<std::optional<std::string>>> next() = 0;
};

class Out {
 public:
  virtual ~Out() = default;
  virtual Task<Result<>> send(std::string message) = 0;
};

struct Call {
  session::Service& service;
  Caller caller;
  Form form = Form::binary;
  In& in;
  Out& out;
  bool left = false;  // nobody waits for the answer any more
};

struct Method {
  std::string_view name;
  bool client_streams = false;
  bool server_streams = false;
  std::chrono::seconds limit;  // for the whole call, whatever the caller asks for
  Task<Result<>> (*run)(Call& call);
  bool finishes = false;  // what it has begun is not cancelled when the caller goes

  bool both_ways() const { return client_streams && server_streams; }
};

// nullptr when the service has no such method.
const Method* find_method(std::string_view name);

// The result of the method. It is cancelled, and has ended, when `gone` returns first or `limit` is over; one that finishes is
// told so (Call::left) and waited for.
Task<Result<>> attended(const Method& method, Call& call, Task<void> gone, std::chrono::steady_clock::duration limit);

}  // namespace osb::api::rpc
