// Messages of Jupyter's kernel protocol: made, signed, and read from a peer that may be hostile.
#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "execd/kernels/zmtp.h"

namespace osb::execd::jupyter {

// The client's side of a connection to one kernel.
struct Session {
  std::string id;
  std::string key;  // signs every message
};

struct Incoming {
  std::string type;       // "stream", "execute_reply", ...
  std::string parent_id;  // of the request this belongs to
  std::string content;    // JSON text; empty when it was too large to keep
  std::uint64_t left_out = 0;
};

// `content` is JSON text. The message carries `id`, and answers to it name it as their parent.
std::vector<std::string> make(const Session& session, std::string_view type, std::string_view id, std::string content);
// Errc::malformed for what is no message, Errc::permission_denied for one that is not signed with the key.
Result<Incoming> read(const Session& session, zmtp::Message message);
// The content of a message; large ones let others run on the way.
Task<Result<boost::json::object>> parse_content(std::string text);

}  // namespace osb::execd::jupyter
