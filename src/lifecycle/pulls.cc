#include "lifecycle/pulls.h"

#include <boost/asio/post.hpp>

#include "base/log.h"
#include "base/text.h"

namespace osb::lifecycle {
namespace {

constexpr std::size_t kWorkers = 4;
constexpr std::size_t kMaxPulls = 64;

// Credentials are part of the key: whoever has none must not ride on a pull that was let in with them.
std::string key_of(const std::string& reference, const image::RegistryAuth& auth) {
  std::string key = reference;
  key += '\0';
  key += auth.username;
  key += '\0';
  key += auth.password;
  return key;
}

}  // namespace

PullTicket::PullTicket(Pulls& pulls, std::shared_ptr<Pull> pull, Executor executor)
    : pulls_(pulls), pull_(std::move(pull)), timer_(executor, Timer::time_point::max()) {
  pull_->tickets.insert(this);
}

PullTicket::~PullTicket() {
  pull_->tickets.erase(this);
  pulls_.leave(*this);
}

std::vector<image::LayerProgress> PullTicket::layers() const {
  std::lock_guard lock(pull_->mutex);
  return pull_->layers;
}

Task<void> PullTicket::wait(std::chrono::steady_clock::duration limit) {
  if (pull_->result) co_return;
  timer_.expires_after(limit);
  co_await timer_.async_wait(nothrow);
}

Pulls::~Pulls() {
  if (workers_) workers_->join();
}

asio::thread_pool& Pulls::workers() {
  if (!workers_) workers_ = std::make_unique<asio::thread_pool>(kWorkers);
  return *workers_;
}

Result<> Pulls::check_room() const {
  if (working_ < kMaxPulls) return Ok{};
  return Error(Errc::exhausted, cat("this server pulls ", working_, " images already"))
      .with_code("SANDBOX::LIMIT_REACHED")
      .with_hint("try again later");
}

std::shared_ptr<PullTicket> Pulls::join(const std::string& reference, image::RegistryAuth auth) {
  auto key = key_of(reference, auth);
  if (auto found = pulls_.find(key); found != pulls_.end()) return std::make_shared<PullTicket>(*this, found->second, io_.get_executor());
  auto pull = std::make_shared<Pull>();
  pull->key = key;
  pulls_.emplace(std::move(key), pull);
  auto ticket = std::make_shared<PullTicket>(*this, pull, io_.get_executor());
  ++working_;
  log::info("image pull starts", {{"image", reference}});
  asio::post(workers(), [this, pull, reference, auth = std::move(auth)] {
    image::Store::PullOptions options{.auth = auth, .stop = pull->stop.get_token(), .progress = {}};
    options.progress = [&pull](const std::vector<image::LayerProgress>& layers) {
      std::lock_guard lock(pull->mutex);
      pull->layers = layers;
    };
    auto result = images_.pull(reference, options);
    asio::post(io_, [this, pull, result = std::move(result)]() mutable { finished(pull, std::move(result)); });
  });
  return ticket;
}

void Pulls::leave(PullTicket& ticket) {
  auto& pull = ticket.pull_;
  if (!pull->tickets.empty() || pull->result) return;
  pull->stop.request_stop();
  pulls_.erase(pull->key);  // who comes now begins anew
}

void Pulls::finished(const std::shared_ptr<Pull>& pull, Result<image::Image> result) {
  if (result) log::info("image pulled", {{"image", result->name}, {"digest", result->digest}});
  if (!result) log::warn("image not pulled", {{"error", result.error().what()}});
  pull->result = std::move(result);
  if (auto found = pulls_.find(pull->key); found != pulls_.end() && found->second == pull) pulls_.erase(found);
  for (PullTicket* ticket : pull->tickets) ticket->wake();
  if (--working_ == 0) idle_.cancel();
}

Task<void> Pulls::stop() {
  for (auto& [key, pull] : pulls_) pull->stop.request_stop();
  while (working_ > 0) co_await idle_.async_wait(nothrow);
}

}  // namespace osb::lifecycle
