// One gRPC call: a reactor of the library on one side, a coroutine on the I/O thread on the other.
//
// The library calls back on threads of its own; every callback only posts. read(), write() and finish() are for the I/O thread
// and hold one message at a time, so that a slow side slows the other.
#pragma once
#include <grpcpp/generic/async_generic_service.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/task.h"
#include "base/result.h"

namespace osb::grpc_door {

class Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(asio::io_context& io, grpc::GenericCallbackServerContext& context);

  // nullopt: the client has said all.
  Task<std::optional<std::string>> read();
  // Errc::unavailable when the call is gone, Errc::timeout when the client takes nothing for `stall`.
  Task<Result<>> write(std::string message, std::chrono::steady_clock::duration stall);
  void finish(int code, const std::string& message, const std::string& details);
  void add_trailer(const std::string& name, const std::string& value);
  // Returns when the client has cancelled the call or its time is over.
  Task<void> cancelled();

  const std::string& path() const { return path_; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  // Keeps the object until the library has let go of it.
  void hold(std::shared_ptr<Call> self) { self_ = std::move(self); }

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  template <class Step>
  void post(Step step);

  asio::io_context& io_;
  grpc::GenericCallbackServerContext& context_;
  std::string path_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  grpc::ByteBuffer in_, out_;
  Timer read_event_, write_event_, cancel_event_;
  bool reading_ = false, read_ok_ = false;
  bool writing_ = false, write_ok_ = false;
  bool cancelled_ = false, finished_ = false;
  std::shared_ptr<Call> self_;
};

}  // namespace osb::grpc_door
