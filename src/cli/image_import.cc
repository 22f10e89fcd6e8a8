#include "cli/image_import.h"

#include <unistd.h>

#include <boost/json.hpp>

#include "base/text.h"
#include "cli/api.h"
#include "cli/find_daemon.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr Millis kLongImport{3'600'000};

// What the daemon reports while it imports: one JSON object a line, the last one the image or the error.
class Progress {
 public:
  void take(std::string_view bytes) {
    pending_ += bytes;
    for (auto end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
      line(std::string_view(pending_).substr(0, end));
      pending_.erase(0, end + 1);
    }
    if (pending_.size() > 64 * 1024) pending_.clear();
  }
  Result<json::object> result() {
    if (shown_) write_all(STDERR_FILENO, "\r\033[K");
    if (last_.contains("error") && last_["error"].is_object()) {
      const auto& error = last_["error"].get_object();
      return Error(Errc::invalid_argument, text_of(error, "message")).with_hint(text_of(error, "hint"));
    }
    if (!last_.contains("image") || !last_["image"].is_object())
      return Error(Errc::unavailable, "the daemon stopped in the middle of the import");
    return last_["image"].get_object();
  }

 private:
  void line(std::string_view text) {
    auto object = parse_object(text);
    if (!object) return;
    last_ = *std::move(object);
    if (!last_.contains("bytes") || ::isatty(STDERR_FILENO) != 1) return;
    shown_ = true;
    write_all(STDERR_FILENO,
              cat("\r\033[Kimporting: ", format_bytes(number_of(last_, "bytes")), ", ", number_of(last_, "entries"), " files"));
  }
  std::string pending_;
  json::object last_;
  bool shown_ = false;
};

}  // namespace

std::uint64_t number_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return 0;
  return value->is_uint64()                            ? value->get_uint64()
         : value->is_int64() && value->get_int64() > 0 ? static_cast<std::uint64_t>(value->get_int64())
                                                       : 0;
}

Result<json::object> import_archive(const Args& args, const std::string& path, const std::string& name, int interrupt) {
  TRY(auto api, find_daemon(args));
  api.interrupted_by(interrupt);
  TRY(auto key, key_for(args, api.address()));
  json::object body{{"path", path}};
  if (!name.empty()) body["name"] = name;
  Request request{"POST", "/v1/images/import", {{"Content-Type", "application/json"}}, json::serialize(body)};
  if (!key.empty()) request.headers.emplace_back("OPEN-SANDBOX-API-KEY", key);
  TRY(auto connection, api.another_connection());
  Progress progress;
  std::string whole;
  auto sink = [&](std::string_view bytes) {
    if (whole.size() < 64 * 1024) whole += bytes;
    progress.take(bytes);
    return true;
  };
  TRY(auto reply, connection.stream(request, std::chrono::steady_clock::now() + kLongImport, sink));
  reply.body = whole;
  if (reply.status > 299) return error_of(reply);
  return progress.result();
}

}  // namespace osb::cli
