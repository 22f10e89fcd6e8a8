#include "lifecycle/spares.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace osb::lifecycle {
namespace {

using namespace std::chrono_literals;

// A create is usually followed by a command at once; making the next spare a moment later leaves both cores to it.
constexpr auto kAfterACreate = 3ms;
constexpr auto kLookAgain = 10s;

}  // namespace

void Demand::asked(bool hit, std::int64_t now_nanos) {
  quiet_since_ = now_nanos;
  if (hit) return;
  wanted_ = std::min(std::max(options_.first_batch, wanted_ * 2), options_.most_of_one);
}

void Demand::passed(std::int64_t now_nanos) {
  if (now_nanos - quiet_since_ < options_.idle_seconds * 1'000'000'000) return;
  quiet_since_ = now_nanos;
  wanted_ /= 2;
}

Spares::Spares(asio::io_context& io, runtime::Runtime& runtime, SpareOptions options)
    : runtime_(runtime), options_(options), rest_(io.get_executor()), tasks_(io.get_executor()) {
  if (!runtime_.capabilities().spares) options_.most = 0;
}

std::optional<SandboxId> Spares::take(const Shape& shape) {
  if (options_.most == 0 || stopping_) return std::nullopt;
  auto& pool = pools_.try_emplace(shape, options_).first->second;
  std::optional<SandboxId> taken;
  if (!pool.ready.empty()) {
    taken = std::move(pool.ready.front());
    pool.ready.pop_front();
    where_.erase(taken->text());
  }
  ++(taken ? hits_ : misses_);
  pool.demand.asked(taken.has_value(), boot_now_nanos());
  tend();
  return taken;
}

bool Spares::ended(const SandboxId& id) {
  auto found = where_.find(id.text());
  if (found == where_.end()) return false;
  std::erase_if(*found->second, [&](const SandboxId& each) { return each.text() == id.text(); });
  where_.erase(found);
  tend();
  return true;
}

void Spares::drain() {
  for (auto& [shape, pool] : pools_) {
    for (auto& id : pool.ready) surplus_.push_back(std::move(id));
    pool.ready.clear();
  }
  where_.clear();
  std::erase_if(pools_, [](const auto& each) { return each.second.making == 0; });
  tend();
}

bool Spares::uses_image(const std::string& digest_or_name) const {
  return std::any_of(pools_.begin(), pools_.end(), [&](const auto& each) {
    bool any = !each.second.ready.empty() || each.second.making > 0;
    return any && (each.first.image == digest_or_name || each.first.image_digest == digest_or_name);
  });
}

std::size_t Spares::total() const {
  std::size_t all = surplus_.size();
  for (const auto& [shape, pool] : pools_) all += pool.ready.size() + pool.making;
  return all;
}

Spares::Count Spares::count() const {
  std::size_t ready = 0;
  for (const auto& [shape, pool] : pools_) ready += pool.ready.size();
  return {hits_, misses_, ready};
}

// While there are no spares and nobody wants any, nothing runs and nothing wakes up.
void Spares::tend() {
  if (stopping_) return;
  rest_.cancel();
  if (std::exchange(tending_, true)) return;
  tasks_.spawn("spare sandboxes", tend_pools());
}

// The emptiest pool first.
std::optional<Spares::Order> Spares::next_order() {
  Pool* neediest = nullptr;
  const Shape* shape = nullptr;
  std::size_t missing = 0;
  for (auto& [each, pool] : pools_) {
    std::size_t here = pool.ready.size() + pool.making;
    if (pool.demand.wanted() <= here || pool.demand.wanted() - here <= missing) continue;
    missing = pool.demand.wanted() - here;
    neediest = &pool;
    shape = &each;
  }
  if (neediest == nullptr || total() >= options_.most) return std::nullopt;
  ++neediest->making;
  return Order{*shape, SandboxId::random()};
}

void Spares::shrink(std::int64_t now) {
  for (auto& [shape, pool] : pools_) {
    pool.demand.passed(now);
    while (pool.ready.size() > pool.demand.wanted()) {
      where_.erase(pool.ready.back().text());
      surplus_.push_back(std::move(pool.ready.back()));
      pool.ready.pop_back();
    }
  }
  std::erase_if(pools_,
                [](const auto& each) { return each.second.demand.wanted() == 0 && each.second.ready.empty() && each.second.making == 0; });
}

Task<void> Spares::tend_pools() {
  while (!stopping_) {
    rest_.expires_after(kAfterACreate);
    co_await rest_.async_wait(nothrow);
    co_await do_what_is_due();
    if (pools_.empty()) break;
    rest_.expires_after(kLookAgain);
    co_await rest_.async_wait(nothrow);
  }
  tending_ = false;
}

Task<void> Spares::do_what_is_due() {
  while (!stopping_) {
    shrink(boot_now_nanos());
    if (!surplus_.empty()) {
      auto id = std::move(surplus_.front());
      surplus_.pop_front();
      co_await destroy(std::move(id));
    } else if (auto order = next_order()) {
      co_await make(*std::move(order));
    } else {
      co_return;
    }
  }
}

Task<void> Spares::make(Order order) {
  SandboxSpec spec;
  spec.image = order.shape.image;
  spec.policy = order.shape.policy;
  spec.limits = order.shape.limits;
  auto made = co_await runtime_.prepare(order.id, std::move(spec));
  auto found = pools_.find(order.shape);
  if (found == pools_.end() || stopping_) {
    if (made) surplus_.push_back(std::move(order.id));
    co_return;
  }
  --found->second.making;
  if (made) {
    found->second.ready.push_back(order.id);
    where_.emplace(order.id.text(), &found->second.ready);
    co_return;
  }
  // The create that comes next meets the same trouble and reports it; making more now would only add to it.
  log::warn("cannot make a spare sandbox", {{"error", made.error().what()}});
  found->second.demand = Demand(options_);
}

Task<void> Spares::destroy(SandboxId id) {
  auto gone = co_await runtime_.destroy(id);
  if (!gone && gone.error().kind() != Errc::not_found)
    log::warn("spare sandbox not destroyed", {{"sandbox", id.text()}, {"error", gone.error().what()}});
}

Task<void> Spares::stop() {
  stopping_ = true;
  co_await tasks_.stop();
  drain();
  while (!surplus_.empty()) {
    auto id = std::move(surplus_.front());
    surplus_.pop_front();
    co_await destroy(std::move(id));
  }
}

}  // namespace osb::lifecycle
