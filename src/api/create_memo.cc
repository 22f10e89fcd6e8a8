#include "api/create_memo.h"

namespace osb::api {
namespace {

bool may_stay(const SandboxSpec& spec) {
  bool secret = !spec.env.empty() || !spec.image_auth.username.empty() || !spec.image_auth.password.empty();
  // An extension may name a pool, and what a pool is changes.
  return !secret && spec.metadata.empty() && spec.extensions.empty() && spec.volumes.empty();
}

}  // namespace

const SandboxSpec* CreateMemo::find(std::string_view body) const {
  if (body.empty()) return nullptr;
  for (const auto& kept : kept_)
    if (kept.body == body) return &kept.spec;
  return nullptr;
}

void CreateMemo::keep(std::string_view body, const SandboxSpec& spec) {
  if (body.empty() || body.size() > kMaxBodyBytes || !may_stay(spec)) return;
  kept_[next_] = {std::string(body), spec};
  next_ = (next_ + 1) % kMost;
}

}  // namespace osb::api
