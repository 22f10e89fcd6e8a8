// Many clients at once from one thread: each has a kept connection and goes round a list of requests, the next one sent when the
// answer to the last is in. Requests are put together from parts made beforehand and answers are looked at, not parsed, so that
// little of the machine goes into asking.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"

namespace bench {

// What one client remembers between its requests.
struct Memo {
  std::size_t client = 0;
  std::string id, token;
};

struct Step {
  std::function<void(std::string& out, const Memo& memo)> write;            // appends a whole request
  std::function<bool(int status, std::string_view body, Memo& memo)> read;  // false: an error
};

struct LoadSettings {
  Address address{};
  std::vector<Step> steps{};
  Step repair{};  // sent after an error when the memo has an id, so that nothing is left; no write: nothing is sent
  std::size_t clients = 1;
  double seconds = 1;    // no round of steps begins later
  std::size_t most = 0;  // rounds begun in all; 0: no bound
};

struct LoadResult {
  std::size_t done = 0, errors = 0;
  double seconds = 0;
  double generator_share = 0;   // of all cores, what asking cost
  double machine_share = 0;     // of all cores, what was busy in all
  std::vector<double> samples;  // microseconds of each whole round
  std::vector<Memo> memos;      // as the clients were left
  std::string first_error;
  double rate() const { return seconds > 0 ? static_cast<double>(done) / seconds : 0; }
};

LoadResult run_load(const LoadSettings& settings);

// create, endpoint, exec, delete: over TCP nobody can run a command without asking for the token. Over the unix socket nobody needs to.
LoadSettings whole_lives(const Server& server, std::size_t clients, double seconds);
// One command after the other, each client in a sandbox of its own.
LoadSettings commands(const Server& server, const std::vector<Door>& doors, double seconds);
// Creates that are kept; the ids are appended to `ids`.
LoadSettings creates(const Server& server, std::size_t clients, std::size_t most, std::vector<std::string>& ids);
// Deletes of these.
LoadSettings deletes(const Server& server, std::size_t clients, std::vector<std::string> ids);

std::string request_head(const Server& server, const std::string& method, const std::string& path);

}  // namespace bench
