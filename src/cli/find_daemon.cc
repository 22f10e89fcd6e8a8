#include "cli/find_daemon.h"

#include <cerrno>
#include <cstdlib>

#include "base/text.h"
#include "model/places.h"
#include "sys/kernel_file.h"

namespace osb::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Result<std::string> read_key(const std::string& path) {
  TRY(auto text, sys::read_file(path, 4096));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

Error nobody(const Address& address, const Error& why) {
  if (why.sys() == EACCES)
    return Error(Errc::permission_denied, cat("may not open ", address.text()))
        .with_hint("run as the user that owns the daemon's socket (usually root), or use --host http://127.0.0.1:8080 with a key");
  if (why.sys() == ENOENT || why.sys() == ECONNREFUSED)
    return Error(Errc::unavailable, cat("no daemon listens on ", address.text()), why.sys())
        .with_hint("start one: opensandbox daemon start; or name another: --host ADDRESS");
  return Error(why.kind(), cat("reach ", address.text(), ": ", why.what()), why.sys());
}

}  // namespace

// The names the daemon's configuration has for these two, so that one environment serves both sides.
std::string usual_socket() {
  auto root = environment("OPENSANDBOX_STORAGE_RUN_DIR"), instance = environment("OPENSANDBOX_SERVER_INSTANCE");
  return cat(root.empty() ? usual_run_dir() : root, "/", instance.empty() ? "default" : instance, "/api.sock");
}

Result<std::optional<Address>> named_daemon(const Args& args) {
  std::string text = args.get("host");
  if (text.empty()) text = environment("OPENSANDBOX_HOST");
  if (text.empty()) {
    text = environment("OPEN_SANDBOX_DOMAIN");
    auto protocol = environment("OPEN_SANDBOX_PROTOCOL");
    if (!text.empty() && !protocol.empty() && !text.contains("://")) text = cat(protocol, "://", text);
  }
  if (text.empty()) return std::optional<Address>{};
  auto address = parse_address(text);
  if (!address) return usage_error(address.error().what(), address.error().hint());
  return std::optional<Address>(*std::move(address));
}

Result<std::string> key_for(const Args& args, const Address& address) {
  if (args.has("api-key")) return args.get("api-key");
  if (args.has("api-key-file")) {
    auto key = read_key(args.get("api-key-file"));
    if (!key) return usage_error(key.error().what());
    return key;
  }
  if (auto key = environment("OPEN_SANDBOX_API_KEY"); !key.empty()) return key;
  if (address.is_unix) return std::string();
  // A key file we may not read is no error: the daemon may run without keys, and says 401 where it does not.
  if (address.host != "127.0.0.1" && address.host != "localhost" && address.host != "::1") return std::string();
  auto key = read_key(usual_state_dir() + "/api-key");
  return key ? *std::move(key) : std::string();
}

Result<Api> find_daemon(const Args& args) {
  TRY(auto named, named_daemon(args));
  Address address = named ? *std::move(named) : Address{true, usual_socket(), 0};
  TRY(auto key, key_for(args, address));
  Api api(address, std::move(key));
  if (auto open = api.connect(); !open) return nobody(address, open.error());
  return api;
}

}  // namespace osb::cli
