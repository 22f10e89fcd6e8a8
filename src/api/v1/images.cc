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

Reply delete_image(Context& context, Call call) {
  if (!call.caller.sees_all)
    co_return Error(Errc::permission_denied, "Images are shared; only a key that sees all sandboxes may remove one.");
  auto name = http::percent_decode(call.param("name"), false);
  if (!name || name->empty()) co_return Error(Errc::not_found, "There is no image of that name.").with_code("SANDBOX::IMAGE_NOT_FOUND");
  auto in_use = [&context](const image::Image& image) {
    return context.lifecycle.image_in_use(image.digest) || context.lifecycle.image_in_use(image.name);
  };
  auto removed = context.images.remove(*name, in_use);
  if (!removed) co_return coded(std::move(removed).error());
  co_return http::Response::empty(204);
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
  auto line = last_line(*import->result);
  if (sent) sent = co_await responder.chunk(line);
  if (sent) sent = co_await responder.end();
  co_return Ok{};
}

}  // namespace osb::api::v1
