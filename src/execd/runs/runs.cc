#include "execd/runs/runs.h"

#include <algorithm>

#include "base/clock.h"
#include "base/id.h"
#include "base/text.h"

namespace osb::execd::runs {
namespace {

constexpr std::string_view kKeyHeader = "Idempotency-Key";
constexpr std::size_t kMaxKey = 128;

// FNV-1a. A client that sends two different requests under one key makes a mistake, it does not attack itself.
void mix(std::uint64_t& hash, std::string_view text) {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ text.size()) * 0x100000001b3;
}

bool in_key(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == ':' || c == '-';
}

}  // namespace

std::shared_ptr<Run> Runs::add(Key key) {
  if (runs_.size() >= kMaxEnded) forget_old();  // it looks at all of them
  return runs_.emplace_back(std::make_shared<Run>(executor_, budget_, random_hex(16), std::move(key)));
}

std::shared_ptr<Run> Runs::find(std::string_view id) {
  forget_old();
  auto found = std::find_if(runs_.begin(), runs_.end(), [&](const auto& run) { return run->id() == id; });
  return found == runs_.end() ? nullptr : *found;
}

Result<std::shared_ptr<Run>> Runs::find(const Key& key) {
  if (key.text.empty()) return std::shared_ptr<Run>();
  forget_old();
  auto found = std::find_if(runs_.begin(), runs_.end(), [&](const auto& run) { return run->key().text == key.text; });
  if (found == runs_.end()) return std::shared_ptr<Run>();
  if ((*found)->key().request != key.request)
    return Error(Errc::conflict, "this Idempotency-Key was used for another request; take a new one").with_code("IDEMPOTENCY_CONFLICT");
  return *found;
}

void Runs::forget_old() {
  std::int64_t oldest = boot_now_nanos() - kKeepNanos;
  auto ended = static_cast<std::size_t>(std::count_if(runs_.begin(), runs_.end(), [](const auto& run) { return run->ended(); }));
  std::erase_if(runs_, [&](const auto& run) {
    if (!run->ended() || (run->ended_nanos() >= oldest && ended <= kMaxEnded)) return false;
    --ended;
    return true;
  });
}

bool Runs::release_oldest(const void* asker) {
  for (const auto& run : runs_) {
    EventLog& log = run->log();
    if (!run->ended() || run->has_primary() || &log == asker || log.memory() == 0) continue;
    log.release();
    return true;
  }
  return false;
}

void Runs::give_back() {
  forget_old();
  for (const auto& run : runs_)
    if (run->ended() && run->delivered()) run->log().keep_last();
}

Result<Key> read_key(const http::Request& request, std::string_view body) {
  Key key;
  if (!request.headers.has(kKeyHeader)) return key;
  key.text = request.headers.get(kKeyHeader);
  bool valid = !key.text.empty() && key.text.size() <= kMaxKey && std::all_of(key.text.begin(), key.text.end(), in_key) &&
               request.headers.count(kKeyHeader) == 1;
  if (!valid) return Error(Errc::invalid_argument, "Idempotency-Key must be 1 to 128 of [A-Za-z0-9._:-]").at(kKeyHeader);
  key.request = 0xcbf29ce484222325;
  mix(key.request, request.path);
  mix(key.request, body);
  return key;
}

}  // namespace osb::execd::runs
