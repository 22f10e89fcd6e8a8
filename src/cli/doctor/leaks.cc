#include "cli/doctor/leaks.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace osb::cli {
namespace {

// Who owns what, by the ledgers alone.
class Owners {
 public:
  explicit Owners(const Snapshot& host) {
    for (const auto& instance : host.instances) {
      instances_.insert(instance.name);
      if (instance.is_alive) living_.insert(instance.name);
    }
    for (const auto& record : host.records) {
      sandboxes_.insert({record.instance, record.id});
      ids_.insert(record.id);
      if (record.range) {
        ranges_.insert(*record.range);
        berths_.insert({record.instance, cat("berth-", *record.range)});
      } else {
        unknown_range_ = true;
      }
    }
    for (const auto& process : host.processes)
      if (process.waits && lives(process.instance)) waiting_.insert({process.instance, process.berth});
  }
  bool lives(const std::string& name) const { return living_.contains(name); }
  bool knows_berth(const std::string& instance, const std::string& berth) const { return berths_.contains({instance, berth}); }
  bool awaits(const std::string& instance, const std::string& berth) const { return waiting_.contains({instance, berth}); }
  bool knows_instance(const std::string& name) const { return instances_.contains(name); }
  bool knows(const std::string& instance, const std::string& id) const { return sandboxes_.contains({instance, id}); }
  bool knows_id(const std::string& id) const { return ids_.contains(id); }
  // A record that was cut short has lost its range; until its launcher has cleaned up, nobody's ids can be told apart.
  bool knows_uid(std::uint32_t uid) const { return unknown_range_ || ranges_.contains((uid - kFirstSandboxUid) / kUidsPerRange); }

 private:
  std::set<std::string> instances_, living_, ids_;
  std::set<std::pair<std::string, std::string>> sandboxes_, berths_, waiting_;
  std::set<std::uint32_t> ranges_;
  bool unknown_range_ = false;
};

bool is_sandbox_uid(std::uint32_t uid) { return uid >= kFirstSandboxUid && uid < kPastSandboxUids; }

bool is_owned(const Owners& owners, const Snapshot::Process& process) {
  if (process.waits && owners.awaits(process.instance, process.berth)) return true;
  if (!process.berth.empty()) return owners.knows_berth(process.instance, process.berth);
  return !is_sandbox_uid(process.uid) || owners.knows_uid(process.uid);
}

bool is_owned(const Owners& owners, const Snapshot::Group& group) {
  if (group.berth.empty()) return owners.knows_instance(group.instance);
  bool taken = group.in_use && !owners.awaits(group.instance, group.berth);
  bool in_reserve = !taken && group.berth.starts_with("berth-") && owners.lives(group.instance);
  return in_reserve || owners.knows_berth(group.instance, group.berth);
}

void add_instances(std::vector<Leak>& out, const Snapshot& host, const Owners& owners) {
  for (const auto& instance : host.instances)
    if (instance.is_private && !instance.is_alive) out.push_back({"private instance", cat(instance.name, " (nobody runs it)")});
  for (const auto& name : host.private_states)
    if (!owners.knows_instance(name)) out.push_back({"private state", name});
  for (const auto& block : host.blocks)
    if (!owners.knows_instance(block.instance)) out.push_back({"id ranges", cat("block ", block.number, " of instance ", block.instance)});
}

void add_objects(std::vector<Leak>& out, const Snapshot& host, const Owners& owners) {
  for (const auto& group : host.groups)
    if (!is_owned(owners, group))
      out.push_back({"cgroup", cat(group.hierarchy, "/opensandbox-", group.instance, group.berth.empty() ? "" : "/", group.berth)});
  for (const auto& process : host.processes)
    if (!is_owned(owners, process)) out.push_back({"process", cat(process.pid, " ", process.name, " (uid ", process.uid, ")")});
  for (const auto& socket : host.sockets)
    if (!owners.knows(socket.instance, socket.id)) out.push_back({"socket", socket.path});
  for (const auto& disk : host.disks)
    if (!owners.knows_id(disk.id)) out.push_back({"disk", disk.path});
  for (const auto& point : host.mounts) out.push_back({"mount", point});
}

// Disks have no names, so a device cannot be told from another; more devices than sandboxes is what can be told.
void add_loops(std::vector<Leak>& out, const Snapshot& host) {
  for (std::size_t i = host.records.size(); i < host.loops.size(); ++i)
    out.push_back({"loop device", cat(host.loops[i].device, " on ", host.loops[i].backing)});
}

}  // namespace

std::vector<Leak> find_leaks(const Snapshot& host) {
  Owners owners(host);
  std::vector<Leak> out;
  add_instances(out, host, owners);
  add_objects(out, host, owners);
  add_loops(out, host);
  std::ranges::sort(out);
  return out;
}

}  // namespace osb::cli
