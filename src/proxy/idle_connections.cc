#include "proxy/idle_connections.h"

#include "base/clock.h"

namespace osb::proxy {
namespace {

constexpr std::int64_t kMaxIdleNanos = std::chrono::nanoseconds(IdleConnections::kMaxIdle).count();
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
  if (kept_.size() >= kMaxKept) return;
  kept_.insert_or_assign(id.text(), Kept{std::move(connection), boot_now_nanos()});
}

void IdleConnections::keep_ahead(const SandboxId& id, std::unique_ptr<http::ClientConnection> connection) {
  if (ahead_.size() < kMaxKept) ahead_.insert_or_assign(id.text(), Kept{std::move(connection)});
}

bool IdleConnections::start_clock(const SandboxId& id) {
  auto found = ahead_.extract(id.text());
  if (found.empty()) return false;
  if (kept_.size() >= kMaxKept) return false;
  found.mapped().since_nanos = boot_now_nanos();
  kept_.insert(std::move(found));
  return true;
}

void IdleConnections::forget(const SandboxId& id) {
  kept_.erase(id.text());
  ahead_.erase(id.text());
}

void IdleConnections::clear() {
  kept_.clear();
  ahead_.clear();
}

void IdleConnections::drop_old() {
  auto now = boot_now_nanos();
  std::erase_if(kept_, [&](const auto& entry) { return now - entry.second.since_nanos >= kMaxIdleNanos; });
}

}  // namespace osb::proxy
