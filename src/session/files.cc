#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstring>

#include "base/text.h"
#include "model/json.h"
#include "session/live.h"

namespace osb::session {
namespace {

namespace json = boost::json;

constexpr std::size_t kBlock = 64 * 1024;
constexpr std::size_t kMaxListing = 4u << 20;
constexpr std::size_t kMaxAnswer = 256 * 1024;
constexpr std::string_view kNoFile = "FILE::NOT_FOUND";

// A file as the form that execd takes: a head, the bytes as they come, a foot.
class UploadForm final : public http::BodyReader {
 public:
  UploadForm(std::string_view path, std::uint32_t mode, std::string_view boundary, http::BodyReader& content) : content_(content) {
    char digits[8] = {};
    std::snprintf(digits, sizeof digits, "%o", mode);
    head_ = cat("--", boundary, "\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{\"path\":", json_string(path),
                ",\"mode\":", digits, "}\r\n--", boundary, "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n\r\n");
    foot_ = cat("\r\n--", boundary, "--\r\n");
  }
  std::optional<std::uint64_t> content_length() const override {
    auto length = content_.content_length();
    if (!length) return std::nullopt;
    return *length + head_.size() + foot_.size();
  }
  bool done() const override { return stage_ == 2 && at_ == foot_.size(); }
  Task<Result<std::size_t>> read_some(std::span<char> into) override {
    if (stage_ == 1) {
      auto read = co_await content_.read_some(into);
      if (!read || *read > 0) co_return read;
      stage_ = 2;
    }
    const auto& text = stage_ == 0 ? head_ : foot_;
    auto n = std::min(into.size(), text.size() - at_);
    std::memcpy(into.data(), text.data() + at_, n);
    at_ += n;
    if (stage_ == 0 && at_ == text.size()) stage_ = 1, at_ = 0;
    co_return n;
  }

 private:
  http::BodyReader& content_;
  std::string head_;
  std::string foot_;
  int stage_ = 0;  // head, content, foot
  std::size_t at_ = 0;
};

std::string text_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  const auto* text = value ? value->if_string() : nullptr;
  return text ? std::string(*text) : std::string();
}

std::uint64_t number_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  if (!value || !value->is_int64() || value->get_int64() < 0) return 0;
  return static_cast<std::uint64_t>(value->get_int64());
}

FileInfo info_of(const json::object& object) {
  FileInfo info;
  info.path = text_of(object, "path");
  info.type = text_of(object, "type");
  if (info.type != "file" && info.type != "directory" && info.type != "symlink") info.type = "other";
  info.size = number_of(object, "size");
  // execd writes the octal digits as a number.
  for (auto [digits, shift] = std::pair(number_of(object, "mode"), 0); digits > 0 && shift <= 9; digits /= 10, shift += 3)
    info.mode |= static_cast<std::uint32_t>(digits % 10 & 7) << shift;
  if (auto time = parse_rfc3339(text_of(object, "modified_at"))) info.modified_at = *time;
  return info;
}

http::ClientRequest request_for(std::string method, std::string_view route, std::string_view path) {
  http::ClientRequest request;
  request.method = std::move(method);
  request.target = cat(route, "?path=", http::percent_encode(path));
  return request;
}

Error bad_answer() { return Error(Errc::internal, "execd answers something else than it promises").with_code("SESSION::EXECD_FAILED"); }

}  // namespace

Task<Result<FileInfo>> LiveService::file_info(SandboxId id, std::string path, Caller caller) {
  CO_TRY(auto exchange, co_await ask(std::move(id), request_for("GET", "/files/info", path), std::move(caller)));
  if (exchange->status() != 200) co_return co_await refusal_of(*exchange, kNoFile);
  CO_TRY(auto body, co_await exchange->read_all(kMaxAnswer));
  CO_TRY(auto object, parse_json_object(body));
  if (object.size() != 1 || !object.begin()->value().is_object()) co_return bad_answer();
  co_return info_of(object.begin()->value().get_object());
}

Task<Result<FileInfo>> LiveService::write_file(SandboxId id, std::string path, std::uint32_t mode, http::BodyReader& content,
                                               Caller caller) {
  CO_TRY([[maybe_unused]] auto sandbox, running(id, caller));
  if (auto fine = check_path(path); !fine) co_return std::move(fine).error();
  if (mode == 0 || mode > 0777) co_return invalid("mode", "must be octal digits from 001 to 777");
  Use use(*this, id);
  auto boundary = random_hex(24);
  UploadForm form(path, mode, boundary, content);
  auto request = to_execd("POST", "/files/upload");
  request.headers.add("Content-Type", cat("multipart/form-data; boundary=", boundary));
  request.body_source = &form;
  auto exchange = co_await ask(id, std::move(request), caller);
  if (!exchange) co_return std::move(exchange).error();
  if ((*exchange)->status() != 200) co_return co_await refusal_of(**exchange, kNoFile);
  [[maybe_unused]] auto rest = co_await (*exchange)->read_all(kMaxAnswer);
  exchange->reset();
  co_return co_await file_info(std::move(id), std::move(path), std::move(caller));
}

Task<Result<>> LiveService::read_file(SandboxId id, std::string path, Caller caller, TakeBytes take) {
  CO_TRY([[maybe_unused]] auto sandbox, running(id, caller));
  if (auto fine = check_path(path); !fine) co_return std::move(fine).error();
  Use use(*this, id);
  CO_TRY(auto exchange, co_await ask(id, request_for("GET", "/files/download", path), std::move(caller)));
  if (exchange->status() != 200) co_return co_await refusal_of(*exchange, kNoFile);
  std::string block(kBlock, '\0');
  for (;;) {
    CO_TRY(auto read, co_await exchange->read_some(block));
    if (read == 0) co_return Ok{};
    auto taken = co_await take(std::string_view(block).substr(0, read));
    if (!taken) co_return std::move(taken).error();
  }
}

// execd finds a file that is missing as good as removed; whoever names one wants to know.
Task<Result<>> LiveService::remove_file(SandboxId id, std::string path, Caller caller) {
  CO_TRY([[maybe_unused]] auto sandbox, running(id, caller));
  if (auto fine = check_path(path); !fine) co_return std::move(fine).error();
  Use use(*this, id);
  CO_TRY(auto info, co_await file_info(id, path, caller));
  if (info.type == "directory") co_return invalid("path", "is a folder; remove it with a command");
  CO_TRY(auto exchange, co_await ask(id, request_for("DELETE", "/files", path), std::move(caller)));
  if (exchange->status() != 200) co_return co_await refusal_of(*exchange, kNoFile);
  [[maybe_unused]] auto rest = co_await exchange->read_all(kMaxAnswer);
  co_return Ok{};
}

Task<Result<std::vector<FileInfo>>> LiveService::list_directory(SandboxId id, std::string path, Caller caller) {
  CO_TRY([[maybe_unused]] auto sandbox, running(id, caller));
  if (auto fine = check_path(path); !fine) co_return std::move(fine).error();
  Use use(*this, id);
  auto request = request_for("GET", "/directories/list", path);
  request.target += "&depth=1";
  CO_TRY(auto exchange, co_await ask(id, std::move(request), std::move(caller)));
  if (exchange->status() != 200) co_return co_await refusal_of(*exchange, kNoFile);
  auto body = co_await exchange->read_all(kMaxListing);
  if (!body)
    co_return Error(Errc::too_large, "The folder has too many entries for one answer.")
        .with_code("FILE::TOO_MANY")
        .with_hint("List it with a command.");
  CO_TRY(auto listing, parse_json(*body, {.bytes = kMaxListing, .depth = 8}));
  if (!listing.is_array()) co_return bad_answer();
  std::vector<FileInfo> out;
  for (const auto& entry : listing.get_array())
    if (entry.is_object()) out.push_back(info_of(entry.get_object()));
  co_return out;
}

Task<Result<>> LiveService::make_directory(SandboxId id, std::string path, Caller caller) {
  CO_TRY([[maybe_unused]] auto sandbox, running(id, caller));
  if (auto fine = check_path(path); !fine) co_return std::move(fine).error();
  Use use(*this, id);
  auto request = to_execd("POST", "/directories");
  request.body = cat("{", json_string(path), ":{\"mode\":755}}");
  CO_TRY(auto exchange, co_await ask(id, std::move(request), std::move(caller)));
  if (exchange->status() != 200) co_return co_await refusal_of(*exchange, kNoFile);
  [[maybe_unused]] auto rest = co_await exchange->read_all(kMaxAnswer);
  co_return Ok{};
}

}  // namespace osb::session
