// Bodies and queries of the session API: unknown members are refused, the error names the field.
#pragma once
#include <string_view>

#include "base/result.h"
#include "http/http.h"
#include "session/values.h"

namespace osb::api::sessions {

inline constexpr std::size_t kLargeJson = 4u << 20;  // an exec with 1 MiB of standard input, whatever it is escaped to

struct ExecBody {
  session::ExecRequest request;
  bool stream = false;
  std::uint64_t max_output_bytes = session::kDefaultOutputBytes;
};
struct RunBody {
  session::CreateRequest session;
  ExecBody exec;
};

Result<session::CreateRequest> parse_create(std::string_view body);
Result<ExecBody> parse_exec(std::string_view body);
Result<ExecBody> parse_code(std::string_view body);
Result<RunBody> parse_run(std::string_view body);

struct Page {
  std::size_t number = 1;
  std::size_t size = 100;
};
Result<Page> parse_page(std::string_view query);
struct FileQuery {
  std::string path;
  std::uint32_t mode = 0644;
};
Result<FileQuery> parse_file_query(std::string_view query, bool with_mode);
// Of `after`, else of Last-Event-ID; absent = 0.
Result<std::uint64_t> parse_after(const http::Request& request);

}  // namespace osb::api::sessions
