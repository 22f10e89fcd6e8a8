#include "execd/files/upload.h"

#include <optional>

#include "base/text.h"
#include "execd/files/new_file.h"
#include "execd/json.h"
#include "http/multipart.h"

namespace osb::execd::files {
namespace {

constexpr mode_t kFileMode = 0755;  // what a client that says nothing gets: 0777 less the mask
constexpr std::size_t kSmallBuffer = 16 * 1024;
constexpr std::size_t kLargeBuffer = 256 * 1024;
constexpr std::size_t kMaxEpilogue = 64 * 1024;
constexpr std::uint64_t kMaxUnused = std::uint64_t{4} << 30;  // read after a failure

Error invalid(std::string_view code, std::string what) { return Error(Errc::invalid_argument, std::move(what)).with_code(code); }
Error bad_metadata(std::string what) { return invalid("INVALID_FILE_METADATA", std::move(what)); }
Error bad_form(std::string what) { return invalid("INVALID_FILE", std::move(what)); }

struct Metadata {
  std::string path;
  Permission permission;
};

class Upload {
 public:
  Upload(const Setup& setup, std::string_view boundary) : setup_(setup), parts_(boundary) {}
  ~Upload() {
    files_.clear();
    if (!committed_) unmake_directories(made_);
  }

  Result<> take(std::string_view bytes) {
    while (!bytes.empty()) {
      auto event = parts_.next(bytes);
      switch (event.kind) {
        case http::Multipart::Kind::part: CHECK_OK(begin_part()); break;
        case http::Multipart::Kind::data: CHECK_OK(take_data(event.data)); break;
        case http::Multipart::Kind::part_end: CHECK_OK(end_part()); break;
        case http::Multipart::Kind::failed: return bad_form(std::string(parts_.problem()));
        case http::Multipart::Kind::end: ended_ = true; break;
        case http::Multipart::Kind::more: break;
      }
    }
    return Ok{};
  }
  bool ended() const { return ended_; }

  Result<> finish() {
    if (!ended_) return bad_form("the form ends before its last boundary");
    if (described_ == 0) return bad_metadata("the form has no part named \"metadata\"");
    if (files_.empty()) return invalid("INVALID_FILE_CONTENT", "the form has no part named \"file\"");
    if (described_ != files_.size()) return bad_form(cat("the form has ", described_, " metadata parts for ", files_.size(), " files"));
    for (NewFile& file : files_) CHECK_OK(file.commit());
    committed_ = true;
    return Ok{};
  }

 private:
  enum class In { nothing, metadata, file };

  Result<> begin_part() {
    if (++parts_seen_ > 2 * kMaxUploads + 16)
      return Error(Errc::too_large, cat("more than ", kMaxUploads, " files in one request")).with_code("INVALID_FILE");
    if (parts_.name().empty()) return bad_form("a part has no name");
    in_ = parts_.name() == "metadata" ? In::metadata : parts_.name() == "file" ? In::file : In::nothing;
    text_.clear();
    return in_ == In::file ? begin_file() : Result<>(Ok{});
  }

  Result<> take_data(std::string_view data) {
    if (in_ == In::file) return files_.back().write(data);
    if (in_ == In::nothing) return Ok{};
    if (text_.size() + data.size() > kMaxMetadata) return bad_metadata(cat("a metadata part is larger than ", kMaxMetadata, " bytes"));
    text_ += data;
    return Ok{};
  }

  Result<> end_part() {
    In was = std::exchange(in_, In::nothing);
    if (was == In::metadata) return keep_metadata();
    if (was == In::file) return files_.back().seal(waiting_[files_.size() - 1].permission, kFileMode);
    return Ok{};
  }

  Result<> keep_metadata() {
    waiting_bytes_ += text_.size();
    if (described_ == kMaxUploads || waiting_bytes_ > kMaxWaitingMetadata)
      return Error(Errc::too_large, cat("more than ", kMaxUploads, " files in one request")).with_code("INVALID_FILE");
    auto metadata = parse_metadata();
    if (!metadata) return bad_metadata(metadata.error().what());
    waiting_.push_back(*std::move(metadata));
    ++described_;
    return Ok{};
  }

  Result<Metadata> parse_metadata() {
    TRY(auto object, parse_object(text_));
    TRY(auto path, text_member(object, "path"));
    Metadata metadata;
    TRY(metadata.path, expand(setup_, path));
    TRY(metadata.permission, parse_permission(object, names_));
    return metadata;
  }

  Result<> begin_file() {
    if (files_.size() >= waiting_.size()) return bad_metadata("a metadata part must come before the file it describes");
    const std::string& path = waiting_[files_.size()].path;
    TRY(auto parent, make_directories(parent_of(path), 0777, &made_));
    TRY(auto place, locate(path));
    CHECK_OK(share_directory(place));
    TRY(auto file, NewFile::beside(std::move(place)));
    files_.push_back(std::move(file));
    return Ok{};
  }

  // Many files of one directory hold it open once.
  Result<> share_directory(Place& place) {
    struct stat mine{};
    ::fstat(place.dir->get(), &mine);
    for (auto& [known, info] : directories_)
      if (info.st_dev == mine.st_dev && info.st_ino == mine.st_ino) return place.dir = known, Ok{};
    if (directories_.size() == kMaxUploadDirectories)
      return Error(Errc::too_large, cat("more than ", kMaxUploadDirectories, " directories in one request")).with_code("INVALID_FILE");
    directories_.emplace_back(place.dir, mine);
    return Ok{};
  }

  const Setup& setup_;
  http::Multipart parts_;
  Names names_;
  In in_ = In::nothing;
  std::string text_;
  std::vector<Metadata> waiting_;  // by position; the first files_.size() of them have their file
  std::size_t waiting_bytes_ = 0;
  std::size_t described_ = 0;
  std::size_t parts_seen_ = 0;
  std::vector<std::pair<std::shared_ptr<Fd>, struct stat>> directories_;
  std::vector<std::string> made_;
  std::vector<NewFile> files_;
  bool ended_ = false;
  bool committed_ = false;
};

}  // namespace

// Reads the whole body, also after a failure: most clients write all before they look for an answer, and would learn only that the
// connection broke. What was written is gone as soon as it is known that it will not do.
Task<Result<>> upload(const Setup& setup, http::Request& request) {
  auto boundary = http::Multipart::boundary_of(request.headers.get("Content-Type"));
  std::optional<Upload> form;
  Result<> done = Ok{};
  if (boundary)
    form.emplace(setup, *boundary);
  else
    done = bad_form("the request is not multipart/form-data with a boundary of 1 to 70 characters");
  http::BodyReader& body = *request.body;
  auto length = body.content_length();
  std::size_t room = length && *length <= kSmallBuffer ? kSmallBuffer : kLargeBuffer;
  auto buffer = std::make_unique_for_overwrite<char[]>(room);
  std::uint64_t unused = 0;
  while (!body.done() && unused < kMaxUnused) {
    auto got = co_await body.read_some(std::span(buffer.get(), room));
    if (!got) co_return std::move(got).error().with_code("INVALID_FILE");
    if (*got == 0) break;
    if (!form || form->ended()) unused += *got;
    if (form && unused > kMaxEpilogue) done = bad_form("the form goes on behind its last boundary");
    if (form && done) done = form->take({buffer.get(), *got});
    if (!done) form.reset();
  }
  if (!form) co_return done;
  co_return form->finish();
}

}  // namespace osb::execd::files
