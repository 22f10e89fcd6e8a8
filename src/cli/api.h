// The daemon's API as the commands need it: JSON in, JSON out, refusals turned into errors with a hint.
#pragma once
#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/address.h"
#include "cli/connection.h"
#include "cli/units.h"

namespace osb::cli {

// The way to execd in one sandbox, through the daemon.
struct Door {
  std::string path;  // "/sandboxes/<id>/proxy/44772"
  Headers headers;   // its token
};

struct ListFilter {
  std::vector<std::string> states;
  std::vector<std::pair<std::string, std::string>> metadata;
};

class Api {
 public:
  Api(Address address, std::string key) : address_(std::move(address)), key_(std::move(key)) {}

  const Address& address() const { return address_; }
  Result<> connect();                       // now, to learn whether somebody listens
  Result<Connection> another_connection();  // for an upgrade or a stream
  void interrupted_by(int fd) { interrupt_ = fd; }

  // One call on a kept connection. Replies past 299 are errors that carry the daemon's code, message and hint.
  Result<Reply> call(std::string method, std::string target, std::string body = {}, Headers extra = {}, Millis within = Millis(30'000));

  // Answers when it runs: an image that must be pulled first is waited for.
  // With a key the daemon makes one sandbox however often it is asked.
  Result<boost::json::object> create(const boost::json::object& request, const std::string& idempotency_key = {});
  Result<boost::json::object> get(std::string_view id);
  Result<std::vector<boost::json::object>> list(const ListFilter& filter);  // every page
  Result<> remove(std::string_view id);
  Result<std::string> renew(std::string_view id, Millis from_now, Millis within = Millis(30'000));  // the new expiry
  Result<Door> door(std::string_view id);

  // An id, a prefix of one id, or the value of metadata "name". Several: Errc::conflict and the hint lists them.
  Result<std::string> resolve(std::string_view text);

 private:
  Result<boost::json::object> wait_for_image(const std::string& id);
  Result<Reply> call_once(const Request& request, Millis within);

  Address address_;
  std::string key_;
  std::optional<Connection> connection_;
  int interrupt_ = -1;
};

// The error of a reply past 299.
Error error_of(const Reply& reply);
Result<boost::json::object> parse_object(std::string_view json);
std::string text_of(const boost::json::object& object, std::string_view key);  // "" when absent or no text
std::string text_of(const boost::json::object& object, std::string_view key, std::string_view inner);

}  // namespace osb::cli
