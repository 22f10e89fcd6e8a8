// Which daemon a command talks to.
#pragma once
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/api.h"
#include "cli/spec.h"

namespace osb::cli {

// <run dir>/<instance>/api.sock: /run/opensandbox/default/api.sock (an ordinary user: below his own run directory, model/places.h)
// unless OPENSANDBOX_STORAGE_RUN_DIR or OPENSANDBOX_SERVER_INSTANCE say otherwise.
std::string usual_socket();

// --host, then OPENSANDBOX_HOST, then OPEN_SANDBOX_DOMAIN (what the SDKs read). nullopt: none of them says anything.
Result<std::optional<Address>> named_daemon(const Args& args);

// The key for an address: none for a unix socket; else --api-key, --api-key-file, OPEN_SANDBOX_API_KEY, the local key file.
Result<std::string> key_for(const Args& args, const Address& address);

// A connected Api: the named daemon, else the one on usual_socket(). Errc::unavailable with a hint when nobody listens.
Result<Api> find_daemon(const Args& args);

}  // namespace osb::cli
