// App: every room of the daemon, started from the ground up and stopped from the roof down.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/api.h"
#include "api/connect/relay_door.h"
#include "api/sessions/door.h"
#include "audit/audit.h"
#include "daemon/config.h"
#include "daemon/grpc_program.h"
#include "daemon/instance.h"
#include "daemon/runtimes.h"
#include "http/http.h"
#include "image/image.h"
#include "lifecycle/service.h"
#include "proxy/proxy.h"
#include "session/live.h"
#include "store/store.h"

namespace osb::daemon {

class App {
 public:
  App(asio::io_context& io, Config config, bool private_instance, RuntimeFactory factory);

  // Leaves nothing running when it fails.
  Task<Result<>> start();
  // Requests finish or are cut, then the rooms stop. A private instance destroys its sandboxes and its directories.
  Task<void> stop();
  // Keys, defaults of new sandboxes and the log level change; what is bound at start (addresses, directories) does not.
  Result<> apply(const Config& config);

  std::string socket() const { return instance_ ? instance_->api_socket() : std::string(); }
  const std::string& address() const { return address_; }                    // of the TCP door, "" when there is none
  const std::string& sessions_address() const { return sessions_address_; }  // of the session API, "" when there is none
  const std::string& grpc_address() const { return grpc_address_; }          // of the gRPC port, "" when there is none
  lifecycle::Service& lifecycle() { return *lifecycle_; }
  std::string status_json() const;  // for the local door; see docs/operations.md
  // Called by whoever asks through the local door.
  void on_reload(std::function<Result<std::string>()> reload) { reload_ = std::move(reload); }
  session::Service* sessions() { return sessions_.get(); }  // null in a private instance

 private:
  Task<Result<>> start_rooms();
  Result<> open_files();
  Task<Result<>> start_runtime_room();
  Result<> open_doors();
  Task<Result<>> open_session_door();
  Result<> open_grpc_door();
  void on_ended(const runtime::Ended& ended);
  Task<void> destroy_all();

  asio::io_context& io_;
  Config config_;
  bool private_;
  RuntimeFactory factory_;
  std::string address_;
  std::int64_t started_nanos_ = 0;  // boot time
  std::function<Result<std::string>()> reload_;
  std::string sessions_address_;
  std::string grpc_address_;
  std::vector<runtime::Ended> early_;  // ended before there was anybody to tell

  std::optional<Instance> instance_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<audit::Log> audit_;
  std::unique_ptr<image::Store> images_;
  StartedRuntime runtime_;
  std::unique_ptr<lifecycle::Service> lifecycle_;
  std::unique_ptr<proxy::Proxy> proxy_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<session::LiveService> sessions_;
  std::unique_ptr<api::sessions::SessionDoor> session_door_;
  std::unique_ptr<http::Server> session_server_;
  std::unique_ptr<api::connect::RelayDoor> relay_door_;
  std::unique_ptr<http::Server> relay_server_;
  std::unique_ptr<GrpcProgram> grpc_program_;
  std::unique_ptr<http::Server> tcp_;
  std::unique_ptr<http::Server> local_;
  Timer ended_;  // poked whenever a sandbox ends
};

}  // namespace osb::daemon
