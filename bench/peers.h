// The same `echo hello` in what others offer, where it is installed: no rows of ours here.
#pragma once
#include <memory>
#include <vector>

#include "client.h"
#include "docker.h"
#include "helper.h"
#include "options.h"

namespace bench {

inline const std::string kBwrap = "bwrap --unshare-all";

class Peers {
 public:
  Peers(Context& context, Docker* docker) : context_(context), docker_(docker) {}
  void add_rows();

 private:
  void add_oci(const std::string& runtime, const Words& options, int every);
  void add_server();

  Context& context_;
  Docker* docker_;
  std::vector<std::unique_ptr<Helper>> helpers_;
  std::unique_ptr<Client> server_;
};

}  // namespace bench
