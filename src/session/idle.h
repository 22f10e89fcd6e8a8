// IdleQueue: which session has been left alone for how long. Plain data; times are CLOCK_BOOTTIME in nanoseconds.
//
// A session in use is in no queue. One that is not is due `patience` after its last use, and so the first of the queue
// is the only one a timer needs to know.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace osb::session {

class IdleQueue {
 public:
  void add(const std::string& id, std::int64_t now);  // known from now on, unused
  void remove(std::string_view id);
  // Uses may overlap; begin() and end() of a session that is not known do nothing.
  void begin(std::string_view id);
  void end(std::string_view id, std::int64_t now);

  // Since when the one that was left alone first has been.
  std::optional<std::int64_t> oldest() const;
  // Takes those left alone since `until` or longer out of the queue; they are no longer known.
  std::vector<std::string> take(std::int64_t until);
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    int uses = 0;
    std::int64_t since = 0;
  };
  std::map<std::string, Entry, std::less<>> entries_;
  std::set<std::pair<std::int64_t, std::string>> queue_;
};

}  // namespace osb::session
