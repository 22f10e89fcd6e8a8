#include "proxy/idle_connections.h"

#include "base/clock.h"

namespace osb::proxy {
namespace {

// Well below the time after which execd closes an idle connection itself: a request is never written into a closing one.
constexpr std::int64_t kMaxIdleNanos = 30'000'000'000;
constexpr std::size_t kMaxKept = 4096;

}  // namespace

std::unique_ptr<http::ClientConnection> IdleConnections::take(const SandboxId& id) {
  auto found = kept_.find(id.text());
  if (found == kept_.end()) return nullptr;
  auto kept = std::move(found->second);
  kept_.erase(found);
  if (boot_now_nanos() - kept.since_nanos > kMaxIdleNanos) return nullptr;
  return std::move(kept.connection);
}

void IdleConnections::keep(const SandboxId& id, std::unique_ptr<http::ClientConnection> connection) {
  auto now = boot_now_nanos();
  if (now - swept_nanos_ > kMaxIdleNanos) drop_old(now);
  if (kept_.size() >= kMaxKept) return;
  kept_.insert_or_assign(id.text(), Kept{std::move(connection), now});
}

void IdleConnections::forget(const SandboxId& id) { kept_.erase(id.text()); }

void IdleConnections::drop_old(std::int64_t now_nanos) {
  std::erase_if(kept_, [&](const auto& entry) { return now_nanos - entry.second.since_nanos > kMaxIdleNanos; });
  swept_nanos_ = now_nanos;
}

}  // namespace osb::proxy
