#include "image/registry/session.h"

#include <algorithm>
#include <condition_variable>

#include "base/log.h"
#include "base/text.h"
#include "image/json_text.h"
#include "image/registry/challenge.h"

namespace osb::image::registry {
namespace {

constexpr int kMaxHops = 5;
constexpr std::size_t kMaxToken = 16 * 1024;
constexpr std::size_t kMaxTokenAnswer = 64 * 1024;

bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

Error pull_error(Errc kind, std::string what, std::string_view code = "SANDBOX::IMAGE_PULL_FAILED") {
  return Error(kind, std::move(what)).with_code(code);
}

// The registry's own words are not repeated: they may hold anything, and a remote caller may have chosen the registry.
Error error_of(int status, const RemoteName& name, bool had_credentials) {
  if (status == 401 || status == 403)
    return pull_error(
               Errc::permission_denied,
               cat(name.registry, had_credentials ? " does not accept the credentials for " : " wants credentials for ", name.repository),
               "SANDBOX::IMAGE_PULL_UNAUTHORIZED")
        .with_hint("give image.auth, `image pull --username U --password-stdin`, or a login under images.registries");
  if (status == 404)
    return pull_error(Errc::not_found, cat(name.registry, " has no ", name.repository, name.digest.empty() ? ":" : "@", name.selector()),
                      "SANDBOX::IMAGE_NOT_FOUND");
  if (status == 429) return pull_error(Errc::unavailable, cat(name.registry, " asks to come back later (429)"));
  if (status >= 500) return pull_error(Errc::unavailable, cat(name.registry, " failed with status ", status));
  return pull_error(Errc::invalid_argument, cat(name.registry, " answered with status ", status));
}

bool is_header_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// Percent-encodes for a query.
std::string encoded(std::string_view text) { return http::percent_encode(text); }

}  // namespace

bool is_passing(const Error& error) { return error.kind() == Errc::unavailable || error.kind() == Errc::timeout; }

Result<> pause_before(int attempt, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  auto pause = std::chrono::milliseconds(250) * (1 << (2 * std::min(attempt, 3)));  // 0.25, 1, 4, 16 s
  woken.wait_for(lock, stop, pause, [] { return false; });
  if (stop.stop_requested()) return pull_error(Errc::conflict, "the pull was cancelled", "SANDBOX::IMAGE_PULL_CANCELLED");
  return Ok{};
}

Session::Session(RemoteName name, RegistryAuth auth, Registries registries, std::shared_ptr<Trust> trust, std::stop_token stop)
    : name_(std::move(name)),
      auth_(std::move(auth)),
      registries_(std::move(registries)),
      trust_(std::move(trust)),
      link_(std::move(stop), [this] { cancel(); }) {}

Result<> Session::open() {
  TRY(auto origin, parse_authority(name_.api_host, true));
  if (!may_be_plain(origin, registries_)) return settle(true);
  // Loopback is plain more often than not. A registry on the operator's list gets the chance to be better than feared.
  bool first = !is_loopback_name(origin.host);
  auto settled = settle(first);
  if (settled || stop_.stop_requested()) return settled;
  auto other = settle(!first);
  return other ? other : std::move(settled);
}

Result<> Session::settle(bool tls) {
  TRY(origin_, parse_authority(name_.api_host, tls));
  Url url{origin_, "/v2/"};
  for (int attempt = 0;; ++attempt) {
    auto asked = dial(url, {}, true);
    if (asked && (*asked)->status() == 401) {
      reach_ = (*asked)->reach();
      return answer_challenge(**asked);
    }
    if (asked && (*asked)->status() == 200) {
      reach_ = (*asked)->reach();
      return Ok{};
    }
    Error error = asked ? error_of((*asked)->status(), name_, false) : std::move(asked).error();
    if (asked && !is_passing(error))
      return pull_error(Errc::invalid_argument, cat(name_.registry, " does not speak the registry protocol"));
    if (!is_passing(error) || attempt + 1 >= kAttempts || may_be_plain(origin_, registries_)) return error;
    CHECK_OK(pause_before(attempt, stop_));
  }
}

Result<std::unique_ptr<Exchange>> Session::dial(const Url& url, const http::Headers& headers, bool first) {
  DialOptions options{.registries = registries_, .trust = *trust_, .from = reach_, .first = first, .stop = stop_, .until = until_};
  TRY(auto connection, Connection::open(url.origin, options));
  http::Headers sent = headers;
  sent.add("User-Agent", "opensandbox");
  sent.add("Connection", "close");
  return Exchange::get(std::move(connection), url, sent);
}

Result<std::unique_ptr<Exchange>> Session::get(const Ask& ask) {
  Url url{origin_, cat("/v2/", name_.repository, "/", ask.path)};
  for (int attempt = 0;; ++attempt) {
    auto answer = send(url, ask, true);
    if (answer && (*answer)->status() == 401 && attempt == 0) {
      CHECK_OK(answer_challenge(**answer));
      continue;
    }
    if (!answer) return answer;
    int status = (*answer)->status();
    if (status == 200 || (status == 206 && ask.from > 0)) return answer;
    if (status == 416 && ask.from > 0) return pull_error(Errc::too_large, "the registry has fewer bytes than are here already");
    return error_of(status, name_, !authorization().empty());
  }
}

Result<std::unique_ptr<Exchange>> Session::send(Url url, const Ask& ask, bool with_credentials) {
  for (int hop = 0; hop <= kMaxHops; ++hop) {
    http::Headers headers;
    if (!ask.accept.empty()) headers.add("Accept", ask.accept);
    if (ask.from > 0) headers.add("Range", cat("bytes=", ask.from, "-"));
    bool at_home = url.origin == origin_;
    if (auto secret = authorization(); at_home && with_credentials && !secret.empty()) headers.add("Authorization", secret);
    TRY(auto answer, dial(url, headers, at_home));
    if (!is_redirect(answer->status())) return answer;
    auto next = follow(url, answer->headers().get("Location"));
    if (!next) return pull_error(Errc::invalid_argument, cat(name_.registry, " redirects to nowhere: ", next.error().what()));
    CHECK_OK(check_hop(url, *next));
    // Whoever left the registry's origin does not get its credentials by coming back.
    with_credentials = with_credentials && next->origin == origin_;
    url = *std::move(next);
  }
  return pull_error(Errc::invalid_argument, cat(name_.registry, " redirects more than ", kMaxHops, " times"));
}

Result<> Session::check_hop(const Url& from, const Url& to) const {
  if (to.origin.tls) return Ok{};
  if (!from.origin.tls && may_be_plain(to.origin, registries_)) return Ok{};
  return pull_error(Errc::permission_denied, cat(name_.registry, " redirects to plain http on ", to.origin.authority()),
                    "SANDBOX::IMAGE_PULL_REFUSED");
}

std::string Session::authorization() const {
  std::lock_guard lock(mutex_);
  return authorization_;
}

Result<> Session::answer_challenge(const Exchange& refused) {
  std::vector<std::string_view> fields;
  for (const http::Header& header : refused.headers().fields())
    if (iequals(header.name, "WWW-Authenticate")) fields.push_back(header.value);
  TRY(auto challenge, choose_challenge(fields));
  if (!challenge) return error_of(401, name_, !auth_.empty());
  std::string value;
  if (challenge->scheme == Challenge::Scheme::basic) {
    if (auth_.empty()) return error_of(401, name_, false);
    value = cat("Basic ", base64(cat(auth_.username, ":", auth_.password)));
  } else {
    auto realm = parse_url(challenge->realm);
    if (!realm) return pull_error(Errc::invalid_argument, cat(name_.registry, " names a token service that is no URL"));
    CHECK_OK(check_hop(Url{origin_, "/"}, *realm));
    TRY(auto token, fetch_token(*realm, challenge->service));
    value = cat("Bearer ", token);
  }
  std::lock_guard lock(mutex_);
  authorization_ = std::move(value);
  return Ok{};
}

bool Session::may_get_credentials(const Origin& realm) const {
  return are_neighbours(origin_.host, realm.host) || lists(registries_.trusted_hosts, realm) ||
         (is_loopback_name(origin_.host) && is_loopback_name(realm.host));
}

// The scope is ours: reading this repository and nothing else, whatever the registry asks us to ask for.
Result<std::string> Session::fetch_token(const Url& realm, const std::string& service) {
  Url url = realm;
  url.target += cat(url.target.find('?') == url.target.npos ? "?" : "&", "scope=", encoded(cat("repository:", name_.repository, ":pull")));
  if (!service.empty()) url.target += cat("&service=", encoded(service.substr(0, 512)));
  http::Headers headers;
  if (!auth_.empty()) {
    if (!may_get_credentials(realm.origin))
      return pull_error(Errc::permission_denied,
                        cat(name_.registry, " wants its credentials sent to ", json_string(realm.origin.host.substr(0, 100))),
                        "SANDBOX::IMAGE_PULL_REFUSED")
          .with_hint("if that is its token service, the operator can list the host under images.trusted_hosts");
    headers.add("Authorization", cat("Basic ", base64(cat(auth_.username, ":", auth_.password))));
  }
  bool first = realm.origin == origin_;
  for (int attempt = 0;; ++attempt) {
    auto answer = dial(url, headers, first);
    int status = answer ? (*answer)->status() : 0;
    if (answer && status == 200) {
      TRY(auto text, (*answer)->read_all(kMaxTokenAnswer));
      TRY(auto value, parse_json(text, "token answer"));
      const auto* object = value.if_object();
      std::string token = object == nullptr ? "" : text_at(*object, "token");
      if (token.empty() && object != nullptr) token = text_at(*object, "access_token");
      if (token.empty() || token.size() > kMaxToken || !is_header_text(token))
        return pull_error(Errc::invalid_argument, cat("the token service of ", name_.registry, " gives no usable token"));
      return token;
    }
    Error error = answer ? error_of(status, name_, !auth_.empty()) : std::move(answer).error();
    // A token service that redirects would carry the password to a place nobody checked.
    if (answer && is_redirect(status))
      error = pull_error(Errc::invalid_argument, cat("the token service of ", name_.registry, " redirects"));
    if (!is_passing(error) || attempt + 1 >= kAttempts) return error;
    CHECK_OK(pause_before(attempt, stop_));
  }
}

}  // namespace osb::image::registry
