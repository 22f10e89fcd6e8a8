// Uploads in the audit log: recorded before the first byte is forwarded, and again with what was named and how much came.
//
// The form streams by as it is; nothing is held back and no content is kept, only the paths its metadata names.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "base/id.h"
#include "http/http.h"
#include "http/multipart.h"
#include "model/caller.h"

namespace osb::proxy {

inline constexpr std::size_t kAuditedUploads = 32;  // files of one request that are named; the rest are counted

class UploadRecord final : public http::BodyReader {
 public:
  // nullopt: not an upload. The path is matched as execd matches it.
  static bool is_upload(std::string_view method, std::string_view path);
  UploadRecord(audit::Log& log, Caller caller, const SandboxId& id, http::BodyReader& body, std::string_view content_type);

  Result<> start();              // Errc::unavailable when it cannot be written; the upload must not go on then
  void finish(int http_status);  // 0 = no answer came

  std::optional<std::uint64_t> content_length() const override { return body_.content_length(); }
  bool done() const override { return body_.done(); }
  Task<Result<std::size_t>> read_some(std::span<char> into) override;

 private:
  void look(std::string_view bytes);
  void end_part();

  audit::Log& log_;
  Caller caller_;
  std::string id_;
  http::BodyReader& body_;
  std::optional<http::Multipart> form_;
  std::string metadata_;  // of the part that streams by
  std::vector<std::string> paths_;
  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace osb::proxy
