// Exchange: one request of our own to an execd and its answer, for rooms that read the answer themselves.
//
// It was admitted and recorded like a request of a client. What is read is shown to the record; dropping the exchange
// records the end and keeps the connection for the next one where it is fit for that.
#pragma once
#include <memory>
#include <optional>
#include <span>

#include "base/id.h"
#include "http/http.h"
#include "proxy/command_audit.h"
#include "proxy/upload_audit.h"

namespace osb::proxy {

class Proxy;

class Exchange {
 public:
  Exchange(Proxy& proxy, SandboxId id) : proxy_(proxy), id_(std::move(id)) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  int status() const { return head_.status; }
  const http::Headers& headers() const { return head_.headers; }
  std::optional<std::uint64_t> length() const { return connection_->body().content_length(); }
  // Of the body, or of the stream after a 101; 0 = its end.
  Task<Result<std::size_t>> read_some(std::span<char> into);
  Task<Result<std::string>> read_all(std::size_t limit);
  // After a 101.
  Task<Result<>> write_all(std::string_view bytes);
  // Wakes whoever reads or writes, with an error.
  void close() noexcept;

 private:
  friend class Proxy;
  Proxy& proxy_;
  SandboxId id_;
  std::unique_ptr<http::ClientConnection> connection_;
  http::ClientConnection::Head head_;
  std::optional<CommandRecord> record_;
  std::optional<UploadRecord> upload_;
};

}  // namespace osb::proxy
