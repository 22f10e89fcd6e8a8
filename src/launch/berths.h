// Berths: the numbered places sandboxes lie in. What costs the kernel most and does not depend on the request belongs to the
// place and not to the sandbox: a range of host ids, the user namespace that maps it, a network namespace, a set of cgroups.
//
// A berth is made ahead of time when the launcher idles, and is used again when the sandbox that lay in it left it as it was
// made. What that means is decided here, by looking at what the kernel counts, and never by asking the sandbox: no process and no
// socket is left, its network never carried a packet, its memory is gone, nothing in it was ever killed for memory,
// throttled, frozen or in root mode. Anything else takes the berth apart. Mounts, pid, ipc and uts namespaces, the writable layer and execd
// are never used twice.
#pragma once
#include <deque>
#include <optional>

#include "base/fd.h"
#include "base/result.h"
#include "launch/cgroups.h"
#include "launch/held_root.h"
#include "launch/id_range.h"
#include "launch/namespaces.h"
#include "launch/sprout.h"

namespace osb::launch {

struct Berth {
  std::uint32_t range = 0;
  Fd user_namespace;
  Network network;
  Group group;
  HeldRoot root;  // of the last sandbox, for the next one like it
  Sprout sprout;  // for the next one

  std::uint32_t first_id() const { return first_id_of(range); }
  // Keeps the place and lets the descriptors go; it is not used again then.
  void let_go();
};

class Berths {
 public:
  // `keep` berths are made ahead of time; 0 makes nothing ahead and uses nothing again.
  Berths(IdRanges& ranges, Cgroups& groups, Switches& switches, std::size_t keep)
      : ranges_(ranges), groups_(groups), switches_(switches), keep_(keep) {}

  // One from the reserve, complete, if possible with a sprout of that kind; or a new one that has a range and a user namespace; the
  // other parts are then made by the two calls after it. Three calls, because each is a step of a create that can fail.
  Result<Berth> take(const SproutKind& kind);
  Result<> complete_network(Berth& berth);
  Result<> complete_group(Berth& berth);
  bool uses_again() const { return keep_ > 0; }

  enum class Return { kept, busy, spoiled };
  // busy: a process is still on its way out; ask again in a moment. spoiled: the caller removes the group and gives the range back.
  Return put_back(Berth& berth);

  // A berth that is not used again, whose group goes later. Freeing a memory group walks two lists of every file system of the host,
  // with the lock of all groups held: among thousands of sandboxes that takes longer than their own ends.
  void put_off(Berth berth);
  std::size_t groups_put_off() const { return put_off_.size(); }
  // Removes one of them; false: none is left, or a process is still on its way out of it.
  bool remove_put_off();

  // One of those that are kept that has no sprout yet; to be given back, with one or without.
  bool wants_sprout() const;
  std::optional<Berth> take_bare();
  void give_back(Berth berth);
  void end_dead_sprouts();

  // Makes at most one missing part; false when there is nothing to do. Called while the launcher has nothing else to do.
  bool refill_one();
  bool wants_more() const { return growing_ || ready_.size() < keep_; }
  bool runs_low() const { return ready_.size() < keep_ / 4; }
  // What a busy hour left beyond what is kept is taken apart one by one.
  bool more_than_kept() const { return ready_.size() > keep_; }
  void trim_one();
  // Roots that wait in the reserve, and those of them that waited long enough.
  bool holds_roots() const;
  void drop_stale_roots(std::uint64_t now);
  void clear();

  static std::string group_name(std::uint32_t range);

 private:
  Result<Berth> begin();
  bool make_next_part();
  Berth take_at(std::deque<Berth>::iterator at);
  void discard(Berth berth);

  IdRanges& ranges_;
  Cgroups& groups_;
  Switches& switches_;
  std::size_t keep_;
  std::deque<Berth> ready_;  // first in, first out: a group's cpu time rests between two sandboxes. Those with a sprout come first
  std::optional<Berth> growing_;
  std::deque<std::uint32_t> put_off_;  // ranges whose groups are empty and still there
};

}  // namespace osb::launch
