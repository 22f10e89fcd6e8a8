#include "cli/remote_files.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/id.h"
#include "base/text.h"
#include "http/http.h"

namespace osb::cli {
namespace {

namespace json = boost::json;

constexpr auto kTransferTime = std::chrono::hours(24);  // a stall ends it long before
constexpr auto kStall = Millis(60'000);

std::string query(const std::vector<std::string>& paths) {
  std::string out;
  for (const auto& path : paths) out += cat(out.empty() ? "?" : "&", "path=", http::percent_encode(path));
  return out;
}

std::int64_t number_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  boost::system::error_code failed;
  auto number = value != nullptr ? value->to_number<std::int64_t>(failed) : 0;
  return failed ? 0 : number;
}

RemoteEntry entry_of(const json::object& object) {
  RemoteEntry entry{text_of(object, "path"), text_of(object, "type"), 0, 0644, object};
  entry.size = static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_of(object, "size")));
  entry.mode = from_octal_digits(static_cast<unsigned>(std::clamp<std::int64_t>(number_of(object, "mode"), 0, 777)));
  return entry;
}

Error odd_answer() { return Error(Errc::malformed, "the sandbox's answer is not what it should be"); }

}  // namespace

unsigned octal_digits(unsigned mode) { return (mode >> 6 & 7) * 100 + (mode >> 3 & 7) * 10 + (mode & 7); }
unsigned from_octal_digits(unsigned digits) { return (digits / 100 % 10 & 7) << 6 | (digits / 10 % 10 & 7) << 3 | (digits % 10 & 7); }

std::optional<RemotePath> parse_remote(std::string_view text) {
  auto colon = text.find(':');
  if (colon == text.npos || colon == 0 || colon + 1 == text.size()) return std::nullopt;
  auto name = text.substr(0, colon);
  if (name.contains('/') || name.starts_with('.')) return std::nullopt;
  return RemotePath{std::string(name), std::string(text.substr(colon + 1))};
}

Result<RemoteFiles> RemoteFiles::open(Api& api, std::string_view sandbox) {
  TRY(auto id, api.resolve(sandbox));
  TRY(auto door, api.door(id));
  return RemoteFiles(api, std::move(door));
}

Result<Reply> RemoteFiles::call(std::string method, std::string_view route, std::string body) {
  return api_->call(std::move(method), cat(door_.path, route), std::move(body), door_.headers);
}

Result<RemoteEntry> RemoteFiles::stat(const std::string& path) {
  TRY(auto reply, call("GET", cat("/files/info", query({path}))));
  TRY(auto object, parse_object(reply.body));
  const auto* value = object.if_contains(path);
  if (value == nullptr || !value->is_object()) return odd_answer();
  return entry_of(value->get_object());
}

Result<std::vector<RemoteEntry>> RemoteFiles::list(const std::string& path, unsigned depth) {
  TRY(auto reply, call("GET", cat("/directories/list", query({path}), "&depth=", depth)));
  boost::system::error_code failed;
  auto value = json::parse(reply.body, failed);
  if (failed || !value.is_array()) return odd_answer();
  std::vector<RemoteEntry> entries;
  for (const auto& item : value.get_array())
    if (item.is_object()) entries.push_back(entry_of(item.get_object()));
  return entries;
}

Result<> RemoteFiles::make_directory(const std::string& path, std::optional<unsigned> mode) {
  json::object wish;
  if (mode) wish["mode"] = octal_digits(*mode);
  json::object body;
  body[path] = std::move(wish);
  TRY(auto reply, call("POST", "/directories", json::serialize(body)));
  return Ok{};
}

Result<> RemoteFiles::remove_files(const std::vector<std::string>& paths) {
  TRY(auto reply, call("DELETE", cat("/files", query(paths))));
  return Ok{};
}

Result<> RemoteFiles::remove_trees(const std::vector<std::string>& paths) {
  TRY(auto reply, call("DELETE", cat("/directories", query(paths))));
  return Ok{};
}

Result<> RemoteFiles::move(const std::string& from, const std::string& to) {
  json::array body{json::object{{"src", from}, {"dest", to}}};
  TRY(auto reply, call("POST", "/files/mv", json::serialize(body)));
  return Ok{};
}

Result<Connection*> RemoteFiles::stream_connection() {
  if (!streams_ || !streams_->reusable()) {
    streams_.reset();
    TRY(auto made, api_->another_connection());
    made.fail_on_stall(kStall);
    streams_.emplace(std::move(made));
  }
  return &*streams_;
}

Result<> RemoteFiles::download(const std::string& path, const Sink& sink) {
  TRY(auto* connection, stream_connection());
  Request request{"GET", cat(door_.path, "/files/download", query({path})), door_.headers};
  std::string refusal;
  auto reply = connection->fetch(request, std::chrono::steady_clock::now() + kTransferTime, [&](const Reply& head, std::string_view bytes) {
    if (head.status < 300) return sink(bytes);
    if (refusal.size() < 65536) refusal += bytes;
    return true;
  });
  if (!reply) streams_.reset();
  if (!reply) return std::move(reply).error();
  if (reply->status < 300) return Ok{};
  reply->body = std::move(refusal);
  return error_of(*reply);
}

Result<> RemoteFiles::upload(const std::string& path, std::optional<unsigned> mode, const Source& source) {
  TRY(auto* connection, stream_connection());
  auto boundary = random_hex(16);
  json::object metadata{{"path", path}};
  if (mode) metadata["mode"] = octal_digits(*mode);
  auto head = [&](std::string_view name) {
    return cat("--", boundary, "\r\nContent-Disposition: form-data; name=\"", name, "\"; filename=\"", name, "\"\r\n\r\n");
  };
  std::string lead = cat(head("metadata"), json::serialize(metadata), "\r\n", head("file"));
  std::string tail = cat("\r\n--", boundary, "--\r\n");
  int stage = 0;
  Source form = [&]() -> Result<std::string_view> {
    if (stage == 0) return stage = 1, std::string_view(lead);
    if (stage == 1) {
      TRY(auto bytes, source());
      if (!bytes.empty()) return bytes;
      return stage = 2, std::string_view(tail);
    }
    return std::string_view();
  };
  Request request{"POST", cat(door_.path, "/files/upload"), door_.headers};
  request.headers.emplace_back("Content-Type", cat("multipart/form-data; boundary=", boundary));
  auto reply = connection->upload(request, std::chrono::steady_clock::now() + kTransferTime, form);
  if (!reply) streams_.reset();
  if (!reply) return std::move(reply).error();
  if (reply->status > 299) return error_of(*reply);
  return Ok{};
}

}  // namespace osb::cli
