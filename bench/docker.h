// Docker as a peer, by its command line and by its API. Uses the daemon that runs; starts an installed one only when told to, with
// its data in a folder of ours, and stops it again. Images and containers of ours are gone afterwards.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>

#include "http.h"
#include "load.h"
#include "options.h"

namespace bench {

class Docker {
 public:
  explicit Docker(Context& context);
  ~Docker();
  Docker(const Docker&) = delete;
  Docker& operator=(const Docker&) = delete;

  bool usable() const { return why_not_.empty(); }
  const std::string& why_not() const { return why_not_; }
  void add_rows(Rows& rows);
  // create, start, wait, remove; hardened.
  LoadSettings lives(std::size_t clients, double seconds) const;

 private:
  void start_daemon();
  void stop_daemon();
  void import_image();
  Words command(const Words& words) const;
  double run_by_command(const Words& options);
  double run_by_api();
  void remove_containers();

  Context& context_;
  std::string socket_ = "/var/run/docker.sock", why_not_;
  fs::path folder_;  // of a daemon we started
  pid_t pid_ = -1;
  bool imported_ = false;
};

}  // namespace bench
