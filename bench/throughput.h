// Whole lives and commands a second, closed loop, by number of clients; and what bare spawns reach on all cores.
#pragma once
#include <string>

#include "daemon.h"
#include "docker.h"
#include "load.h"
#include "options.h"

namespace bench {

inline const std::string kSpawnRate = "floor: bare spawns on all cores";
inline const std::string kSustained = "lifecycles, 8 clients for ";  // and the seconds
inline const std::string kPoolOffRate = "lifecycles, 8 clients, pool.automatic: false";
inline const std::string kDockerRate = "Docker API: create+start+wait+rm, 8 clients";
std::string lives_row(int clients);  // name of the row with the default configuration

class Throughput {
 public:
  Throughput(Context& context, Docker* docker) : context_(context), docker_(docker) {}
  void run();

 private:
  void measure_floor();
  void with_defaults();
  void measure_ours(const Daemon& daemon);
  void with_pool_off();
  void measure_docker();
  void lives(const std::string& name, const Daemon& daemon, const Server& server, int clients, double seconds);
  void execs(const Server& server, int clients);
  Row& record(const std::string& name, const LoadResult& result);
  bool started(Daemon& daemon, const std::string& name);

  Context& context_;
  Docker* docker_;  // null: there is none
  double floor_ = 0;
};

}  // namespace bench
