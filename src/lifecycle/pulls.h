// Pulls: images on their way from a registry, each at most once at a time, on threads of their own.
//
// Everybody who wants the same image with the same credentials holds a ticket of one pull. The last ticket that goes
// cancels it. All calls happen on the I/O thread; only the store works elsewhere.
#pragma once
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/result.h"
#include "image/image.h"

namespace osb::lifecycle {

class PullTicket;

struct Pull {
  std::string key;
  std::stop_source stop;
  std::set<PullTicket*> tickets;
  std::optional<Result<image::Image>> result;
  std::mutex mutex;  // over layers: the workers write them
  std::vector<image::LayerProgress> layers;
};

class Pulls;

// A share in a pull. Ends with its holder, also when that is a coroutine cut off in the middle.
class PullTicket {
 public:
  PullTicket(Pulls& pulls, std::shared_ptr<Pull> pull, Executor executor);
  ~PullTicket();
  PullTicket(const PullTicket&) = delete;
  PullTicket& operator=(const PullTicket&) = delete;

  const std::optional<Result<image::Image>>& result() const { return pull_->result; }
  std::vector<image::LayerProgress> layers() const;
  // Until there is a result, wake() was called or `limit` has passed.
  Task<void> wait(std::chrono::steady_clock::duration limit);
  void wake() { timer_.cancel(); }

 private:
  friend class Pulls;
  Pulls& pulls_;
  std::shared_ptr<Pull> pull_;
  Timer timer_;
};

class Pulls {
 public:
  Pulls(asio::io_context& io, image::Store& images) : io_(io), images_(images), idle_(io.get_executor(), Timer::time_point::max()) {}
  ~Pulls();

  std::shared_ptr<PullTicket> join(const std::string& reference, image::RegistryAuth auth);
  // Cancels all and waits until no thread works for us any more.
  Task<void> stop();
  // Threads for this and for other slow work with images; made when first needed.
  asio::thread_pool& workers();
  // exhausted when so many wait already that another would only make the queue longer.
  Result<> check_room() const;

 private:
  friend class PullTicket;
  void leave(PullTicket& ticket);
  void finished(const std::shared_ptr<Pull>& pull, Result<image::Image> result);

  asio::io_context& io_;
  image::Store& images_;
  std::map<std::string, std::shared_ptr<Pull>> pulls_;  // those that somebody waits for
  std::size_t working_ = 0;                             // also those that nobody waits for any more
  Timer idle_;                                          // cancelled when the last one ends
  std::unique_ptr<asio::thread_pool> workers_;
};

}  // namespace osb::lifecycle
