#include "execd/files/routes.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <boost/json/array.hpp>

#include "base/text.h"
#include "execd/files/download.h"
#include "execd/files/paths.h"
#include "execd/files/permission.h"
#include "execd/files/replace.h"
#include "execd/files/tree.h"
#include "execd/files/upload.h"
#include "execd/files/watch.h"
#include "execd/json.h"
#include "execd/replies.h"

namespace osb::execd {
namespace files {
namespace {

using http::Request;
using http::Responder;

constexpr std::size_t kMaxPaths = 1000;  // of one request
constexpr std::string_view kBadBody = "INVALID_REQUEST_BODY";

struct Asked {
  std::string text;  // as the client wrote it
  std::string path;
};

Result<std::vector<Asked>> asked_paths(const Setup& setup, const Request& request) {
  TRY(auto values, query_values(request, "path"));
  if (values.size() > kMaxPaths) return Error(Errc::too_large, cat("more than ", kMaxPaths, " paths in one request"));
  std::vector<Asked> asked;
  for (std::string& text : values) {
    TRY(auto path, expand(setup, text));
    asked.push_back({std::move(text), std::move(path)});
  }
  return asked;
}

// The one path a listing is about.
Result<std::string> asked_path(const Setup& setup, const Request& request) {
  TRY(auto values, query_values(request, "path"));
  if (values.empty()) return Error(Errc::invalid_argument, "the query parameter \"path\" is required").with_code("MISSING_QUERY");
  return expand(setup, values.front());
}

// ---- /files/info, DELETE /files ---------------------------------------------------------------------------

Result<std::string> info_json(const std::vector<Asked>& asked) {
  Names names;
  std::string out = "{";
  for (const Asked& one : asked) {
    struct stat info{};
    if (::lstat(one.path.c_str(), &info) != 0) return failed("stat", one.path, errno == ENOTDIR ? ENOENT : errno);
    if (out.size() > 1) out += ",";
    append_json_string(out, one.text);
    out += ":";
    append_info(out, one.path, info, names);
  }
  return out += "}";
}

Result<Outcome> info(const Setup& setup, const Request& request, std::string_view) {
  TRY(auto asked, asked_paths(setup, request));
  TRY(auto json, info_json(asked));
  return Outcome{std::move(json)};
}

Result<> remove_files(const std::vector<Asked>& asked) {
  for (const Asked& one : asked) {
    struct stat info{};
    if (::lstat(one.path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      return Error(Errc::internal, cat(json_string(one.text.substr(0, 200)), " is a directory")).with_code("RUNTIME_ERROR");
  }
  for (const Asked& one : asked)
    if (::unlink(one.path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) return failed("remove", one.path, errno);
  return Ok{};
}

Result<Outcome> remove(const Setup& setup, const Request& request, std::string_view) {
  TRY(auto asked, asked_paths(setup, request));
  CHECK_OK(remove_files(asked));
  return Outcome{};
}

// ---- permissions, POST /directories -----------------------------------------------------------------------

struct Change {
  std::string path;
  Permission permission;
};

Result<std::vector<Change>> parse_changes(const Setup& setup, std::string_view body) {
  auto object = parse_object(body);
  if (!object) return std::move(object).error().with_code(kBadBody);
  if (object->size() > kMaxPaths) return Error(Errc::too_large, cat("more than ", kMaxPaths, " paths in one request"));
  Names names;
  std::vector<Change> changes;
  for (const auto& [key, value] : *object) {
    if (!value.is_object()) return Error(Errc::malformed, "each path needs an object").with_code(kBadBody);
    TRY(auto path, expand(setup, {key.data(), key.size()}));
    TRY(auto permission, parse_permission(value.get_object(), names));
    changes.push_back({std::move(path), permission});
  }
  return changes;
}

Result<Outcome> permissions(const Setup& setup, const Request&, std::string_view body) {
  TRY(auto changes, parse_changes(setup, body));
  std::vector<Fd> objects;  // all are there before the first is changed
  for (const Change& change : changes) {
    TRY(auto object, open_object(change.path));
    objects.push_back(std::move(object));
  }
  for (std::size_t i = 0; i < changes.size(); ++i) CHECK_OK(apply(changes[i].permission, objects[i], changes[i].path));
  return Outcome{};
}

Result<Outcome> make(const Setup& setup, const Request&, std::string_view body) {
  TRY(auto changes, parse_changes(setup, body));
  for (const Change& change : changes) {
    TRY(auto made, make_directories(change.path, 0777));
    CHECK_OK(apply(change.permission, made, change.path));
  }
  return Outcome{};
}

// ---- /files/mv --------------------------------------------------------------------------------------------

Result<std::vector<Move>> parse_moves(const Setup& setup, std::string_view body) {
  auto value = parse_value(body);
  if (!value) return std::move(value).error().with_code(kBadBody);
  if (!value->is_array()) return Error(Errc::malformed, "the body must be a list of {\"src\",\"dest\"}").with_code(kBadBody);
  if (value->get_array().size() > kMaxPaths) return Error(Errc::too_large, cat("more than ", kMaxPaths, " moves in one request"));
  std::vector<Move> steps;
  for (const auto& item : value->get_array()) {
    if (!item.is_object()) return Error(Errc::malformed, "each move is {\"src\",\"dest\"}").with_code(kBadBody);
    auto from = text_member(item.get_object(), "src");
    auto to = text_member(item.get_object(), "dest");
    if (!from || !to || from->empty() || to->empty())
      return Error(Errc::malformed, "\"src\" and \"dest\" must be paths").with_code(kBadBody);
    Move step;
    TRY(step.from, expand(setup, *from));
    TRY(step.to, expand(setup, *to));
    steps.push_back(std::move(step));
  }
  return steps;
}

Result<Outcome> move(const Setup& setup, const Request&, std::string_view body) {
  TRY(auto moves, parse_moves(setup, body));
  return Outcome{{}, move_trees(std::move(moves))};
}

Result<Outcome> replace_texts(const Setup& setup, const Request& request, std::string_view body) {
  TRY(auto verbose, query_values(request, "verbose"));
  TRY(auto work, replace(setup, body, !verbose.empty() && verbose.front() == "true"));
  return Outcome{{}, std::move(work)};
}

// ---- search, list, rm -rf ---------------------------------------------------------------------------------

Result<> check_directory(const std::string& path, bool follow) {
  struct stat info{};
  int rc = follow ? ::stat(path.c_str(), &info) : ::lstat(path.c_str(), &info);
  if (rc != 0) return failed("list", path, errno == ENOTDIR ? ENOENT : errno);
  if (!S_ISDIR(info.st_mode)) return refused(path, "is not a directory");
  return Ok{};
}

Result<Outcome> search(const Setup& setup, const Request& request, std::string_view) {
  TRY(auto path, asked_path(setup, request));
  CHECK_OK(check_directory(path, true));
  TRY(auto patterns, query_values(request, "pattern"));
  TRY(auto glob, Glob::parse(!patterns.empty() && !patterns.front().empty() ? patterns.front() : "**"));
  return Outcome{{}, list_tree(std::move(path), UINT64_MAX, std::move(glob))};
}

Result<Outcome> list(const Setup& setup, const Request& request, std::string_view) {
  TRY(auto path, asked_path(setup, request));
  TRY(auto depths, query_values(request, "depth"));
  auto depth = depths.empty() ? std::int64_t{1} : parse_int<std::int64_t>(depths.front());
  if (!depth || *depth < 0)
    return Error(Errc::invalid_argument, "\"depth\" must be a whole number that is not negative").with_code(kBadBody);
  CHECK_OK(check_directory(path, false));
  if (*depth == 0) return Outcome{"[]"};
  return Outcome{{}, list_tree(std::move(path), static_cast<std::uint64_t>(*depth), std::nullopt)};
}

Result<Outcome> remove_directories(const Setup& setup, const Request& request, std::string_view) {
  TRY(auto asked, asked_paths(setup, request));
  std::vector<std::string> paths;
  for (Asked& one : asked) paths.push_back(std::move(one.path));
  return Outcome{{}, remove_trees(std::move(paths))};
}

// ---- one way for all --------------------------------------------------------------------------------------

using Act = Result<Outcome> (*)(const Setup&, const Request&, std::string_view body);

constexpr auto kTurn = std::chrono::milliseconds(4);  // then somebody else has his

Task<Result<std::string>> carry_out(std::unique_ptr<Work> work) {
  auto end = std::chrono::steady_clock::now() + work->limit();
  auto turn = std::chrono::steady_clock::now() + kTurn;
  for (;;) {
    CO_TRY(bool done, work->step());
    if (done) co_return work->take_result();
    auto now = std::chrono::steady_clock::now();
    if (now < turn) continue;
    if (now >= end) co_return work->late();
    co_await yield_now();
    turn = std::chrono::steady_clock::now() + kTurn;
  }
}

Task<void> answer(Sandbox& sandbox, Request& request, Responder& responder, Act act) {
  std::string body;
  if (request.method == "POST") {
    auto read = co_await request.body->read_all(kMaxBody);
    if (!read) co_return co_await reply_bad_request(responder, std::move(read).error());
    body = *std::move(read);
  }
  auto outcome = act(sandbox.setup, request, body);
  if (!outcome) co_return co_await reply_failure(responder, std::move(outcome).error());
  Result<std::string> json = std::move(outcome->json);
  if (outcome->work) json = co_await carry_out(std::move(outcome->work));
  if (!json) co_return co_await reply_failure(responder, std::move(json).error());
  auto response = json->empty() ? http::Response::empty(200) : http::Response::json(200, *std::move(json));
  [[maybe_unused]] auto sent = co_await responder.send(std::move(response));
}

Task<void> answer_upload(Sandbox& sandbox, Request& request, Responder& responder) {
  auto done = co_await upload(sandbox.setup, request);
  if (!done) co_return co_await reply_failure(responder, std::move(done).error());
  co_await reply_empty(responder);
}

}  // namespace
}  // namespace files

void add_files_routes(http::Router& routes, Sandbox& sandbox) {
  using http::Request;
  using http::Responder;
  using Params = http::Router::Params;
  struct Row {
    const char* method;
    const char* path;
    files::Act act;
  };
  for (Row row : {Row{"GET", "/files/info", files::info},
                  {"DELETE", "/files", files::remove},
                  {"POST", "/files/permissions", files::permissions},
                  {"POST", "/files/mv", files::move},
                  {"POST", "/files/replace", files::replace_texts},
                  {"GET", "/files/search", files::search},
                  {"POST", "/directories", files::make},
                  {"DELETE", "/directories", files::remove_directories},
                  {"GET", "/directories/list", files::list}})
    routes.add(row.method, row.path,
               [&sandbox, act = row.act](Request& q, Responder& r, const Params&) { return files::answer(sandbox, q, r, act); });
  routes.add("POST", "/files/upload", [&sandbox](Request& q, Responder& r, const Params&) { return files::answer_upload(sandbox, q, r); });
  routes.add("GET", "/osb/v1/files/watch", [&sandbox](Request& q, Responder& r, const Params&) { return files::watch(sandbox, q, r); });
  for (auto method : {"GET", "HEAD"})
    routes.add(method, "/files/download", [&sandbox](Request& q, Responder& r, const Params&) { return files::download(sandbox, q, r); });
}

}  // namespace osb::execd
