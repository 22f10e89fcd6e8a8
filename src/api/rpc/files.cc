#include "api/rpc/files.h"

#include <algorithm>
#include <cstring>

#include "api/rpc/convert.h"

namespace osb::api::rpc {
namespace {

Error malformed(std::string what) { return Error(Errc::malformed, std::move(what)).with_code("GENERAL::MALFORMED"); }

// The messages behind the first one, as one body: what the session service writes files from. A body that is longer than the
// session's disk ends there: nobody is to read on for the sake of an answer that is known.
class Pieces final : public http::BodyReader {
 public:
  Pieces(Call& call, std::uint64_t most) : call_(call), left_(most) {}
  const std::optional<Error>& failure() const { return failure_; }
  std::optional<std::uint64_t> content_length() const override { return std::nullopt; }
  bool done() const override { return done_; }

  Task<Result<std::size_t>> read_some(std::span<char> into) override {
    while (at_ == piece_.size() && !done_) {
      auto more = co_await refill();
      if (more) continue;
      failure_ = more.error();
      co_return std::move(more).error();
    }
    auto count = std::min(into.size(), piece_.size() - at_);
    std::memcpy(into.data(), piece_.data() + at_, count);
    at_ += count;
    co_return count;
  }

 private:
  Task<Result<>> refill() {
    CO_TRY(auto bytes, co_await call_.in.next());
    piece_.clear();
    at_ = 0;
    done_ = !bytes;
    if (done_) co_return Ok{};
    CO_TRY(auto message, decode<WriteFileRequest>(call_.form, *bytes));
    if (message.open) co_return malformed("Only the first message names the file.");
    piece_ = std::move(message.data).value_or(std::string());
    if (piece_.size() > left_) co_return Error(Errc::too_large, "The file is larger than the session's disk.").with_code("FILE::NO_SPACE");
    left_ -= piece_.size();
    co_return Ok{};
  }

  Call& call_;
  std::uint64_t left_;
  std::optional<Error> failure_;
  std::string piece_;
  std::size_t at_ = 0;
  bool done_ = false;
};

}  // namespace

Task<Result<>> write_file(Call& call) {
  CO_TRY(auto first, co_await call.in.next());
  if (!first) co_return malformed("The call has no message.");
  CO_TRY(auto message, decode<WriteFileRequest>(call.form, *first));
  if (!message.open) co_return malformed("The first message must be open: it names the file.");
  CO_TRY(auto id, to_session_id(message.open->session_id));
  CO_TRY(auto mode, to_mode(message.open->mode));
  CO_TRY(auto session, co_await call.service.get(id, call.caller));
  Pieces content(call, session.sandbox.spec.limits.disk_bytes);
  auto path = std::move(message.open->path);
  auto written = co_await call.service.write_file(id, std::move(path), mode, content, call.caller);
  if (!written) co_return content.failure() ? *content.failure() : std::move(written).error();
  auto bytes = encode(call.form, from(*std::move(written)));
  co_return co_await call.out.send(std::move(bytes));
}

namespace {

Task<Result<>> send_piece(Call& call, std::string bytes) {
  FileChunk chunk{std::move(bytes)};
  auto message = encode(call.form, chunk);
  co_return co_await call.out.send(std::move(message));
}

}  // namespace

Task<Result<>> read_file(Call& call, ReadFileRequest request) {
  CO_TRY(auto id, to_session_id(request.session_id));
  session::Service::TakeBytes take = [&call](std::string_view bytes) { return send_piece(call, std::string(bytes)); };
  co_return co_await call.service.read_file(id, std::move(request.path), call.caller, std::move(take));
}

Task<Result<ListDirectoryResponse>> list_directory(Call& call, ListDirectoryRequest request) {
  CO_TRY(auto id, to_session_id(request.session_id));
  CO_TRY(auto entries, co_await call.service.list_directory(id, std::move(request.path), call.caller));
  ListDirectoryResponse answer;
  for (auto& entry : entries) answer.entries.push_back(from(std::move(entry)));
  co_return answer;
}

Task<Result<RemoveFileResponse>> remove_file(Call& call, RemoveFileRequest request) {
  CO_TRY(auto id, to_session_id(request.session_id));
  CO_TRY([[maybe_unused]] auto gone, co_await call.service.remove_file(id, std::move(request.path), call.caller));
  co_return RemoveFileResponse{};
}

}  // namespace osb::api::rpc
