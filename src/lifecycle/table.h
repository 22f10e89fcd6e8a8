// Table: every sandbox we know, with the orders we ask for: newest first, next deadline, oldest finished.
// A plain value container: no I/O, no clock.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lifecycle/events.h"
#include "model/sandbox.h"
#include "store/store.h"

namespace osb::lifecycle {

// Terminated or Failed: no process is left, only the record.
constexpr bool is_finished(State state) { return state == State::terminated || state == State::failed; }

// Why an entry is on its way out. Such an entry is invisible and nobody starts anything new with it.
enum class Leaving : std::uint8_t { no, deleted, expired };

// Where the processor time stood when it was last read; the rate of use is the difference to it.
struct CpuMark {
  std::int64_t boot_nanos = 0;  // 0 = never read
  std::uint64_t cpu_nanos = 0;
  double percent = 0;
};

struct Entry {
  Sandbox sandbox;
  std::string image_name = {};  // what the reference resolved to
  std::string image_digest = {};
  std::shared_ptr<void> image_hold = {};  // keeps other processes from removing it
  Leaving leaving = Leaving::no;
  bool ending = false;  // deleted, but the runtime did not say that it is gone: end_until_gone() is at it
  CpuMark cpu_mark = {};
  EventLog events = {};
  std::optional<store::CreateKey> create_key = {};  // only until it is stored
  std::int64_t expire_not_before = 0;               // boot time; set when the runtime could not remove it at its deadline
};

class Table {
 public:
  // A live sandbox is killed at its deadline by the runtime itself; the table calls it due a moment later, for the
  // case that the runtime did not.
  static constexpr std::int64_t kRuntimeGraceNanos = 500'000'000;

  Entry* find(std::string_view id);
  const Entry* find(std::string_view id) const;
  Entry& insert(Entry&& entry);  // the id is new
  void remove(std::string_view id);
  void changed(Entry& entry);  // call after its state or deadline changed

  std::size_t size() const { return entries_.size(); }
  std::size_t finished() const { return finished_.size(); }
  std::size_t live() const { return entries_.size() - finished_.size(); }
  std::size_t live_of(std::string_view owner) const;
  std::uint64_t promised_bytes() const { return promised_bytes_; }  // memory limits of all that live
  std::optional<std::string> oldest_finished() const;

  std::size_t of_pool(std::string_view pool) const;  // how many live that name it

  std::optional<std::int64_t> next_due() const;          // boot time
  std::vector<std::string> due(std::int64_t now) const;  // ids, earliest first

  // Newest first; equal times by id.
  template <class Visit>
  void each_newest_first(Visit visit) const {
    for (auto at = by_age_.rbegin(); at != by_age_.rend(); ++at) visit(*at->second);
  }
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [id, row] : entries_) visit(row.entry);
  }

 private:
  using Key = std::pair<std::int64_t, std::string>;
  struct Row {
    explicit Row(Entry&& taken) : entry(std::move(taken)) {}
    Entry entry;
    std::optional<Key> due;
    std::optional<Key> finished;
    std::string pool;                 // counted there
    std::uint64_t counted_bytes = 0;  // among those of its owner while it lives
    bool counted = false;
  };
  static std::optional<Key> due_key(const Entry& entry);
  static std::optional<Key> finished_key(const Entry& entry);
  void index(Row& row);
  void unindex(Row& row);
  void count(Row& row);
  void uncount(Row& row);

  std::map<std::string, Row, std::less<>> entries_;
  std::map<Key, const Entry*> by_age_;  // entries of a map stay where they are
  std::set<Key> due_;
  std::set<Key> finished_;
  std::map<std::string, std::size_t, std::less<>> pools_;
  std::map<std::string, std::size_t, std::less<>> live_of_;  // by owner
  std::uint64_t promised_bytes_ = 0;
};

}  // namespace osb::lifecycle
