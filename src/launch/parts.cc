#include "launch/parts.h"

#include "base/log.h"
#include "launch/namespaces.h"

namespace osb::launch {

Result<Identity> Parts::make_identity() {
  TRY(auto range, ranges_.take());
  auto made = make_user_namespace(first_id_of(range));
  if (!made) {
    ranges_.give_back(range);
    return std::move(made).error();
  }
  return Identity{range, *std::move(made)};
}

Result<Identity> Parts::take_identity() {
  if (identities_.empty()) return make_identity();
  Identity identity = std::move(identities_.front());
  identities_.pop_front();
  return identity;
}

Result<Fd> Parts::take_network() {
  if (networks_.empty()) return make_network_namespace();
  Fd network = std::move(networks_.front());
  networks_.pop_front();
  return network;
}

bool Parts::refill_one() {
  // A part that cannot be made now is made, or reported, by the create that needs it.
  if (identities_.size() < keep_) {
    auto made = make_identity();
    if (made)
      identities_.push_back(*std::move(made));
    else
      log::warn("cannot make a user namespace ahead of time", {{"error", made.error().what()}});
    return static_cast<bool>(made);
  }
  if (networks_.size() < keep_) {
    auto made = make_network_namespace();
    if (made)
      networks_.push_back(*std::move(made));
    else
      log::warn("cannot make a network namespace ahead of time", {{"error", made.error().what()}});
    return static_cast<bool>(made);
  }
  return false;
}

}  // namespace osb::launch
