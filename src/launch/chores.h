// What the launcher has to do later: for each sandbox at most one chore of a kind, and for itself (an empty id) likewise.
//
// Whoever ends takes its chores along. Deadlines lie an hour ahead and sandboxes live for milliseconds: what is left of the dead
// would wake the launcher for nothing, and there would be more of it with every life.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace osb::launch {

enum class Chore : std::uint8_t { trim, stems, deadline, hasten, retry_remove, check_frozen, capture_deadline, count_ };

class Chores {
 public:
  struct Due {
    std::uint64_t at = 0;
    Chore chore = Chore::trim;
    std::string id;
    auto operator<=>(const Due&) const = default;
  };

  // In place of one of this kind that is there already. `at` is not zero.
  void put(std::uint64_t at, Chore chore, const std::string& id);
  void drop_all_of(const std::string& id);
  // The earliest that is due by now, which is then no longer here.
  std::optional<Due> take(std::uint64_t now);
  std::uint64_t next() const { return by_time_.empty() ? 0 : by_time_.begin()->at; }
  std::size_t size() const { return by_time_.size(); }

 private:
  using Times = std::array<std::uint64_t, static_cast<std::size_t>(Chore::count_)>;  // 0: no such chore
  std::set<Due> by_time_;
  std::unordered_map<std::string, Times> times_;
};

}  // namespace osb::launch
