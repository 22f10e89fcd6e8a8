#include "api/connect/relay_door.h"

#include "api/sessions/visitors.h"

namespace osb::api::connect {

Error too_many_calls() {
  return Error(Errc::exhausted, "Too many requests of this caller are being answered; wait for some to end.")
      .with_code("GENERAL::TOO_MANY_REQUESTS");
}

http::Handler RelayDoor::handler() {
  return [this](http::Request& request, http::Responder& responder) { return serve(request, responder); };
}

Task<void> RelayDoor::serve(http::Request& request, http::Responder& responder) {
  // Whose socket the client's is cannot be told from here: the rules are those of a door that is not on loopback.
  sessions::DoorRules rules;
  rules.loopback = false;
  auto caller = sessions::identify(request, keys_, rules);
  auto counted = caller ? requests_.enter(caller->name) : RequestCount::Mark();
  if (!counted) caller = too_many_calls();
  co_await serve_relay(service_, std::move(caller), request, responder);
}

}  // namespace osb::api::connect
