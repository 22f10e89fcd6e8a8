#include "proxy/upload_audit.h"

#include "base/log.h"
#include "base/text.h"
#include "http/router.h"
#include "model/json.h"

namespace osb::proxy {
namespace {

constexpr std::size_t kMaxMetadata = 16 * 1024;  // execd refuses more
constexpr std::size_t kMaxPath = 1024;

}  // namespace

bool UploadRecord::is_upload(std::string_view method, std::string_view path) {
  static const http::Router kRouter = [] {
    http::Router made;
    made.add("POST", "/files/upload", {});
    return made;
  }();
  return method == "POST" && kRouter.find(method, path).route != nullptr;
}

UploadRecord::UploadRecord(audit::Log& log, Caller caller, const SandboxId& id, http::BodyReader& body, std::string_view content_type)
    : log_(log), caller_(std::move(caller)), id_(id.text()), body_(body) {
  if (auto boundary = http::Multipart::boundary_of(content_type)) form_.emplace(*boundary);
}

Result<> UploadRecord::start() {
  audit::Event event{"file.upload", id_, "ok", {}};
  if (auto length = body_.content_length()) event.detail.emplace_back("length", cat(*length));
  return log_.record(caller_, event);
}

Task<Result<std::size_t>> UploadRecord::read_some(std::span<char> into) {
  auto got = co_await body_.read_some(into);
  if (got && form_) look({into.data(), *got});
  co_return got;
}

void UploadRecord::look(std::string_view bytes) {
  while (!bytes.empty()) {
    auto event = form_->next(bytes);
    bool metadata = form_->name() == "metadata";
    if (event.kind == http::Multipart::Kind::failed) return form_.reset();
    if (event.kind == http::Multipart::Kind::part) metadata_.clear();
    if (event.kind == http::Multipart::Kind::data && !metadata) bytes_ += event.data.size();
    if (event.kind == http::Multipart::Kind::data && metadata && metadata_.size() <= kMaxMetadata) metadata_ += event.data;
    if (event.kind == http::Multipart::Kind::part_end && metadata) end_part();
  }
}

// What execd will make of the text is execd's; here it is a claim for the record.
void UploadRecord::end_part() {
  ++files_;
  auto object = parse_json_object(metadata_);
  const auto* path = object ? object->if_contains("path") : nullptr;
  if (!path || !path->is_string() || paths_.size() == kAuditedUploads) return;
  paths_.emplace_back(std::string_view(path->get_string()).substr(0, kMaxPath));
}

void UploadRecord::finish(int http_status) {
  bool ok = http_status >= 200 && http_status < 300;
  audit::Event event{"file.uploaded", id_, ok ? "ok" : http_status == 0 ? "unknown" : "refused", {}};
  std::string paths;
  for (const auto& path : paths_) paths += paths.empty() ? path : cat("\n", path);
  event.detail.emplace_back("paths", std::move(paths));
  event.detail.emplace_back("files", cat(files_));
  event.detail.emplace_back("bytes", cat(bytes_));
  if (!ok) event.detail.emplace_back("http_status", cat(http_status));
  if (auto done = log_.record(caller_, event); !done) log::error("upload not recorded", {{"sandbox", id_}, {"error", done.error().what()}});
}

}  // namespace osb::proxy
