#include "execd/files/download.h"

#include <errno.h>
#include <unistd.h>

#include "base/text.h"
#include "execd/files/paths.h"
#include "execd/files/range.h"
#include "execd/small_file.h"

namespace osb::execd::files {
namespace {

constexpr std::size_t kMaxKernelFile = 1024 * 1024;
constexpr std::size_t kSmallFile = 64 * 1024;  // goes in one write with its head

http::Headers headers_for(const std::string& path, const struct stat& info, bool kernel_made) {
  http::Headers headers;
  headers.add("Content-Type", "application/octet-stream");
  headers.add("Content-Disposition", content_disposition(base_name(path)));
  if (kernel_made) return headers;
  headers.add("Accept-Ranges", "bytes");
  headers.add("ETag", etag_of(info));
  headers.add("Last-Modified", http_date(info.st_mtim.tv_sec));
  return headers;
}

struct Plan {
  Fd file;
  Range range;
  http::Response head;
  bool whole = false;  // the body is in the head already
};

Error changed() { return Error(Errc::internal, "the file changed while it was read"); }

http::Response no_such_range(std::uint64_t size) {
  auto response = http::Response::json(416, R"({"code":"UNKNOWN","message":"the range has no byte of the file in it"})");
  response.headers.add("Content-Range", cat("bytes */", size));
  return response;
}

// Short files are read now and leave with their head in one write; kernel files too, as they have no size and no ranges.
Result<Plan> plan(const Setup& setup, const http::Request& request) {
  TRY(auto paths, query_values(request, "path"));
  if (paths.empty()) return Error(Errc::invalid_argument, "the query parameter \"path\" is required").with_code("MISSING_QUERY");
  TRY(auto path, expand(setup, paths.front()));
  TRY(auto content, open_content(path));
  const struct stat& info = content.info;
  auto size = static_cast<std::uint64_t>(info.st_size);
  Plan plan{std::move(content.fd), {}, {200, headers_for(path, info, content.kernel_made), {}}};
  plan.whole = true;
  if (content.kernel_made) {
    TRY(plan.head.body, read_all_of(plan.file.get(), kMaxKernelFile));
    return plan;
  }
  auto range = parse_range(still_the_same(request.headers, info) ? request.headers.get("Range") : std::string_view(), size);
  if (!range) {
    plan.head = no_such_range(size);
    return plan;
  }
  plan.range = *range;
  if (range->partial) {
    plan.head.status = 206;
    plan.head.headers.add("Content-Range", cat("bytes ", range->first, "-", range->first + range->length - 1, "/", size));
  }
  plan.whole = range->length <= kSmallFile;
  if (!plan.whole) return plan;
  plan.head.body.resize(range->length);
  auto n = ::pread(plan.file.get(), plan.head.body.data(), range->length, static_cast<off_t>(range->first));
  if (n < 0 || static_cast<std::size_t>(n) != range->length) return changed();
  return plan;
}

}  // namespace

// A file that becomes shorter while it is sent breaks the answer off visibly; what it grows by is not sent.
Task<void> download(Sandbox& sandbox, http::Request& request, http::Responder& responder) {
  auto planned = plan(sandbox.setup, request);
  if (!planned) co_return co_await reply_failure(responder, std::move(planned).error());
  auto& head = planned->head;
  if (planned->whole) {
    [[maybe_unused]] auto sent = co_await responder.send(std::move(head));
    co_return;
  }
  head.headers.add("Content-Length", cat(planned->range.length));
  auto sent = co_await responder.begin(head.status, std::move(head.headers), {});
  if (sent) sent = co_await responder.send_file(planned->file.get(), planned->range.first, planned->range.length);
  if (sent) sent = co_await responder.end();
}

}  // namespace osb::execd::files
