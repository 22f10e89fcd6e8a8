// An instance of our daemon with a configuration, folders, a port and a key of its own. Nothing of it outlives the object.
#pragma once
#include <sys/types.h>

#include <string>

#include "client.h"
#include "process.h"

namespace bench {

class Daemon {
 public:
  // `extra` is YAML behind the part every instance has.
  Daemon(const fs::path& build, const fs::path& work, const std::string& name, const std::string& extra = "");
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  double start();  // microseconds until /health answers on TCP
  void stop();     // serve only; the state stays
  Server tcp() const;
  Server by_socket() const;
  std::string sessions() const;  // the address of its session API
  const std::string& key() const { return key_; }
  std::string socket() const { return (run_ / "api.sock").string(); }
  pid_t serve() const { return pid_; }
  pid_t launcher() const;  // -1 when there is none
  const std::string& instance() const { return instance_; }
  std::string log() const;

  // Whether the built program takes these lines in its configuration; `why` gets its words if not.
  static bool accepts(const fs::path& build, const fs::path& work, const std::string& extra, std::string* why = nullptr);

 private:
  void end_launcher();

  std::string program_, instance_, key_;
  fs::path folder_, run_;
  std::uint16_t port_;
  pid_t pid_ = -1;
};

}  // namespace bench
