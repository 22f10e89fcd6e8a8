#include "execd/kernels/jupyter.h"

#include <algorithm>
#include <boost/json/stream_parser.hpp>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/text.h"
#include "execd/json.h"

namespace osb::execd::jupyter {
namespace {

constexpr std::string_view kDelimiter = "<IDS|MSG>";
constexpr std::size_t kMaxHeader = 64 * 1024;
constexpr std::size_t kParseAtOnce = 256 * 1024;

Error malformed(std::string_view what) { return Error(Errc::malformed, cat("kernel message: ", what)); }

Result<std::string> header_member(const std::string& header, std::string_view name) {
  if (header.size() > kMaxHeader) return malformed("its header is too large");
  auto object = parse_object(header);
  if (!object) return malformed("its header is not JSON");
  return text_member(*object, name);
}

}  // namespace

std::vector<std::string> make(const Session& session, std::string_view type, std::string_view id, std::string content) {
  std::string header = cat(R"({"msg_id":")", id, R"(","session":")", session.id, R"(","username":"opensandbox","date":")",
                           format_rfc3339(wall_now()), R"(","msg_type":")", type, R"(","version":"5.3"})");
  std::string signature = hmac_sha256_hex(session.key, {header, "{}", "{}", content});
  std::vector<std::string> frames{std::string(kDelimiter), std::move(signature), std::move(header), "{}", "{}"};
  frames.push_back(std::move(content));
  return frames;
}

Result<Incoming> read(const Session& session, zmtp::Message message) {
  auto& frames = message.frames;
  auto at = std::find(frames.begin(), frames.end(), kDelimiter);
  if (frames.end() - at < 6) return malformed("frames are missing");
  const std::string &signature = at[1], &header = at[2], &parent = at[3], &metadata = at[4];
  std::string& content = at[5];
  // What was left out cannot be checked; such a message only tells how large it was.
  bool whole = message.left_out == 0;
  if (whole && !constant_time_equals(signature, hmac_sha256_hex(session.key, {header, parent, metadata, content})))
    return Error(Errc::permission_denied, "kernel message: wrong signature");
  Incoming incoming;
  incoming.left_out = message.left_out;
  TRY(incoming.type, header_member(header, "msg_type"));
  TRY(incoming.parent_id, header_member(parent, "msg_id"));
  if (whole) incoming.content = std::move(content);
  return incoming;
}

Task<Result<boost::json::object>> parse_content(std::string text) {
  boost::json::parse_options options;
  options.max_depth = 64;
  boost::json::stream_parser parser({}, options);
  boost::system::error_code ec;
  for (std::size_t at = 0; at < text.size() && !ec; at += kParseAtOnce) {
    if (at > 0) co_await yield_now();
    parser.write(text.data() + at, std::min(kParseAtOnce, text.size() - at), ec);
  }
  if (!ec) parser.finish(ec);
  if (ec) co_return malformed("its content is not JSON");
  boost::json::value value = parser.release();
  if (!value.is_object()) co_return malformed("its content is no object");
  co_return std::move(value.get_object());
}

}  // namespace osb::execd::jupyter
