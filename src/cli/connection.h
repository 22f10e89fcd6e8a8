// One blocking HTTP/1.1 connection to a daemon, with a deadline on every wait.
//
// The command line has one thing to do at a time, so it needs no event loop; after an upgrade the caller takes the
// descriptor and polls it itself. What comes back through the proxy is from a sandbox: everything read is bounded.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "cli/address.h"

namespace osb::cli {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method = "GET";
  std::string target = "/";
  Headers headers = {};  // Host and Content-Length are added
  std::string body = {};
};

struct Reply {
  int status = 0;
  Headers headers;  // names in lower case
  std::string body;
  std::string_view header(std::string_view lower_case_name) const;
};

class Connection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Errc::unavailable with errno in sys() when nobody listens there.
  static Result<Connection> open(const Address& address, Deadline deadline);
  Connection(Fd socket, std::string authority) : socket_(std::move(socket)), authority_(std::move(authority)) {}

  // Sends and reads the whole reply; of a 101 only the head. Errc::unavailable: the peer went away.
  Result<Reply> call(const Request& request, Deadline deadline);
  // Like call, but hands the body over as it comes; returns the head. `sink` says false to stop.
  Result<Reply> stream(const Request& request, Deadline deadline, const std::function<bool(std::string_view)>& sink);

  // Like stream, with the head beside each piece: a refusal has a body too.
  Result<Reply> fetch(const Request& request, Deadline deadline, const std::function<bool(const Reply&, std::string_view)>& sink);
  // Sends a body of unknown length in pieces until `source` gives an empty one, then reads the reply. A peer that answers
  // before it has read all is heard. An error of the source breaks the request off.
  Result<Reply> upload(const Request& request, Deadline deadline, const std::function<Result<std::string_view>()>& source);
  // Every wait from now on also ends after this long without a byte.
  void fail_on_stall(std::chrono::milliseconds stall) { stall_ = stall; }

  bool reusable() const { return reusable_; }
  int fd() const { return socket_.get(); }
  std::string take_unread() { return std::exchange(unread_, {}); }  // bytes behind the head of a 101
  // A descriptor that ends every wait when it becomes readable (a signalfd): Errc::unavailable, sys() == EINTR.
  void interrupted_by(int fd) { interrupt_ = fd; }

 private:
  using Sink = std::function<bool(std::string_view)>;
  Result<> send(const Request& request, Deadline deadline);
  Result<> send_bytes(std::string_view bytes, Deadline deadline);
  bool answered();                              // something came, or the peer hung up, while we still send
  Result<std::size_t> fill(Deadline deadline);  // 0 = the peer closed
  Result<> wait(short events, Deadline deadline);
  Result<Reply> read_head(Deadline deadline);
  Result<> read_body(const Reply& head, Deadline deadline, const Sink& sink);
  Result<> read_exactly(std::uint64_t size, Deadline deadline, const Sink& sink);
  Result<> read_chunks(Deadline deadline, const Sink& sink);
  Result<std::string> read_line(Deadline deadline);

  Fd socket_;
  std::string authority_;
  std::string unread_;
  int interrupt_ = -1;
  bool reusable_ = true;
  std::chrono::milliseconds stall_{};
  bool stopped_ = false;  // the sink wants no more
};

}  // namespace osb::cli
