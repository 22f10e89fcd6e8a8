// The public protocol over one kept connection: create, ask for the door, run a command, delete. What every SDK does.
#pragma once
#include <memory>
#include <string>

#include "http.h"

namespace bench {

// The same program and the same words as the floor, and what people type.
inline constexpr const char* kSameAsFloor = R"({"command":"/bin/busybox echo hello"})";
inline constexpr const char* kPlainEcho = R"({"command":"echo hello"})";
inline constexpr const char* kShellEcho = R"({"command":"echo hello; true"})";

inline constexpr const char* kUsualLimits = R"("cpu":"1","memory":"256Mi")";
inline constexpr const char* kExecdPort = "44772";

struct Life {
  double create = 0, endpoint = 0, exec = 0, remove = 0;  // microseconds
  double counted() const { return create + exec + remove; }
};

// The way to execd in one sandbox: the path before its own, and the headers it wants.
struct Door {
  std::string path, headers;
};

struct Server {
  Address address{};
  std::string key_header{};  // a whole line, or empty
  std::string prefix = "/v1";
  std::string image = "host";

  std::string create_body(const std::string& limits = kUsualLimits) const;
  static std::string key_line(const std::string& key) { return key.empty() ? "" : "OPEN-SANDBOX-API-KEY: " + key + "\r\n"; }
};

class Client {
 public:
  explicit Client(Server server) : server_(std::move(server)), http_(server_.address) {}

  std::string create(const std::string& limits = kUsualLimits);
  Door door(const std::string& id);
  void remove(const std::string& id);
  // `POST /command` to the end of its stream; microseconds. Throws unless it said hello.
  double exec(const Door& door, const char* body);
  Life whole_life();
  // Every sandbox this key sees; how many there were.
  std::size_t remove_all();

  Http& http() { return http_; }
  const Server& server() const { return server_; }
  Reply call(const std::string& method, const std::string& path, const std::string& body = "");

 private:
  Server server_;
  Http http_;
};

// One create + run + delete on a server we know nothing about but that it speaks the protocol: the endpoint may be elsewhere, and
// is asked until it is ready. Microseconds for all of it.
double foreign_life(Client& client);

}  // namespace bench
