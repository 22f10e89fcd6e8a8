#include <atomic>
#include <boost/asio/post.hpp>
#include <memory>

#include "api/json_text.h"
#include "api/render.h"
#include "api/v1/handlers.h"
#include "model/json.h"
#include "proxy/headers.h"

namespace osb::api::v1 {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(200);

struct ImportRequest {
  std::string path;
  std::string name;
};

Result<ImportRequest> parse_import(std::string_view body) {
  TRY(auto object, parse_json_object(body));
  ImportRequest request;
  const auto* path = object.if_contains("path");
  if (path && path->is_string()) request.path = path->get_string();
  if (request.path.empty() || request.path.front() != '/' || request.path.find('\0') != std::string::npos)
    return Error(Errc::malformed, "path must be an absolute path of a file or directory.").at("path");
  const auto* name = object.if_contains("name");
  if (name && !name->is_null() && !name->is_string()) return Error(Errc::malformed, "name must be a string.").at("name");
  if (name && name->is_string()) request.name = name->get_string();
  return request;
}

// Shared by the loop and the worker. The worker writes the counters; the result arrives by a post to the loop.
struct Import {
  explicit Import(Executor executor) : wake(executor) {}
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> entries{0};
  std::optional<Result<image::Image>> result;
  Timer wake;
};

void run_import(const std::shared_ptr<Import>& import, image::Store& images, asio::io_context& io, ImportRequest request) {
  image::Store::ImportOptions options;
  options.name = std::move(request.name);
  options.progress = [import](std::uint64_t bytes, std::uint64_t entries) {
    import->bytes = bytes;
    import->entries = entries;
  };
  auto result = images.import(request.path, options);
  asio::post(io, [import, result = std::move(result)]() mutable {
    import->result = std::move(result);
    import->wake.cancel();
  });
}

std::string progress_line(const Import& import) {
  ObjectText text;
  text.add("bytes", import.bytes.load()).add("entries", import.entries.load());
  return std::move(text).done() + "\n";
}

std::string last_line(const Result<image::Image>& result) {
  ObjectText text;
  if (result) text.raw("image", image_json(*result));
  if (!result) text.raw("error", error_json(result.error(), Reader::local));
  return std::move(text).done() + "\n";
}

Error coded(Error error) {
  if (!error.code().empty()) return error;
  if (error.kind() == Errc::not_found) return std::move(error).with_code("SANDBOX::IMAGE_NOT_FOUND");
  if (error.kind() == Errc::conflict) return std::move(error).with_code("SANDBOX::IMAGE_IN_USE");
  return error;
}

Task<void> wait_a_while(Import& import) {
  import.wake.expires_after(kProgressInterval);
  co_await import.wake.async_wait(nothrow);
}

http::Headers line_headers() {
  http::Headers headers;
  headers.add("Content-Type", "application/x-ndjson");
  return headers;
}

Result<std::string> image_name(const Call& call) {
  auto name = http::percent_decode(call.param("name"), false);
  if (name && !name->empty()) return *std::move(name);
  return Error(Errc::not_found, "There is no image of that name.").with_code("SANDBOX::IMAGE_NOT_FOUND");
}

Result<> require_sees_all(const Call& call) {
  if (call.caller.sees_all) return Ok{};
  return Error(Errc::permission_denied, "Images are shared; only a key that sees all sandboxes may do this.");
}

}  // namespace

Reply list_images(Context& context, Call) {
  std::string items = "[";
  for (const auto& image : context.images.list()) {
    if (items.size() > 1) items += ',';
    items += image_json(image);
  }
  ObjectText text;
  text.raw("items", items + "]");
  co_return http::Response::json(200, std::move(text).done());
}

Reply get_image(Context& context, Call call) {
  CO_TRY(auto name, image_name(call));
  auto image = context.images.resolve(name);
  if (!image) co_return coded(std::move(image).error());
  co_return http::Response::json(200, image_details_json(*image, context.lifecycle.image_in_use(*image)));
}

Reply delete_image(Context& context, Call call) {
  CO_TRY([[maybe_unused]] auto allowed, require_sees_all(call));
  CO_TRY(auto name, image_name(call));
  auto removed = co_await context.lifecycle.remove_image(std::move(name), std::move(call.caller));
  if (!removed) co_return coded(std::move(removed).error());
  co_return http::Response::empty(204);
}

Reply prune_images(Context& context, Call call) {
  CO_TRY([[maybe_unused]] auto allowed, require_sees_all(call));
  bool all = false;
  if (!call.body.empty()) {
    CO_TRY(auto object, parse_json_object(call.body));
    const auto* value = object.if_contains("all");
    if (value != nullptr && !value->is_bool()) co_return Error(Errc::malformed, "all must be true or false.").at("all");
    all = value != nullptr && value->get_bool();
  }
  CO_TRY(auto pruned, co_await context.lifecycle.prune_images(all, std::move(call.caller)));
  ObjectText text;
  auto& names = text.key("removed");
  append_json_list(names, pruned.names);
  text.add("freedBytes", pruned.freed_bytes);
  co_return http::Response::json(200, std::move(text).done());
}

// A failure within the first moments is an ordinary error; a longer import reports as it goes, one JSON object a line,
// the last one {"image":...} or {"error":...}.
Task<Result<>> import_image(Context& context, Call call, http::Responder& responder) {
  std::string body;
  if (proxy::has_body(call.request)) {
    CO_TRY(body, co_await call.request.body->read_all(kMaxJsonBytes));
  }
  CO_TRY(auto request, parse_import(body));
  auto import = std::make_shared<Import>(context.io.get_executor());
  asio::post(context.workers, [import, &context, request = std::move(request)]() mutable {
    run_import(import, context.images, context.io, std::move(request));
  });
  co_await wait_a_while(*import);
  if (import->result && !*import->result) co_return std::move(*import->result).error();
  auto sent = co_await responder.begin(200, line_headers());
  while (!import->result) {
    auto line = progress_line(*import);
    if (sent) sent = co_await responder.chunk(line);
    co_await wait_a_while(*import);
  }
  if (*import->result) context.lifecycle.image_added();
  auto line = last_line(*import->result);
  if (sent) sent = co_await responder.chunk(line);
  if (sent) sent = co_await responder.end();
  co_return Ok{};
}

}  // namespace osb::api::v1
