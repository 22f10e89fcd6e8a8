#include "enter/plan_message.h"

#include <cerrno>
#include <cstring>
#include <type_traits>

namespace osb::enter {
namespace {

// One description of the order, for both directions.
template <class Archive>
void describe(Archive& a, EnterPlan& p) {
  a.descriptor(p.cgroup);
  a.value(p.host.landlock_abi);
  a.value(p.host.last_capability);
  a.descriptor(p.host.dev_null);
  a.text(p.host.work_dir);
  a.text(p.host.scaffold_path);
  a.list(p.host.directories, [&](HostDirectory& directory) {
    a.text(directory.path);
    a.text(directory.name);
  });
  for (auto* names : {&p.host.proc_masks, &p.host.proc_dir_masks, &p.layer_paths}) a.list(*names, [&](std::string& name) { a.text(name); });
  a.value(p.policy);
  a.value(p.limits);
  a.value(p.first_id);
  a.text(p.hostname);
  a.text(p.machine_id);
  a.value(p.snapshot_layers);
  a.value(p.host_view);
  a.list(p.volumes, [&](PlannedVolume& volume) {
    a.text(volume.mount_path);
    a.text(volume.sub_path);
    a.descriptor(volume.tree);
    a.descriptor(volume.socket);
    a.descriptor(volume.user_namespace);
    a.value(volume.read_only);
  });
  a.text(p.shape);
  a.list(p.filter, [&](sock_filter& instruction) { a.value(instruction); });
  a.list(p.cgroup_tasks, [&](int& tasks) { a.descriptor(tasks); });
  for (int* each : {&p.root, &p.disk_socket, &p.oom_counter, &p.user_namespace, &p.network_namespace, &p.listener, &p.setup, &p.report,
                    &p.started, &p.rest})
    a.descriptor(*each);
  a.value(p.fail_at);
  a.value(p.die_at);
}

class Writer {
 public:
  template <class Value>
  void value(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    message.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& text) {
    value(static_cast<std::uint32_t>(text.size()));
    message.bytes += text;
  }
  template <class Item, class Each>
  void list(std::vector<Item>& items, Each each) {
    value(static_cast<std::uint32_t>(items.size()));
    for (auto& item : items) each(item);
  }
  void descriptor(int fd) {
    std::int32_t place = fd < 0 ? -1 : static_cast<std::int32_t>(message.descriptors.size());
    value(place);
    if (fd >= 0) message.descriptors.push_back(fd);
  }
  PlanMessage message;
};

class Reader {
 public:
  Reader(std::string_view bytes, const int* descriptors, std::size_t count) : left_(bytes), descriptors_(descriptors), count_(count) {}

  template <class Value>
  void value(Value& value) {
    if (left_.size() < sizeof value) return fail();
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
  }
  void text(std::string& text) {
    std::uint32_t size = 0;
    value(size);
    if (size > left_.size()) return fail();
    text.assign(left_.substr(0, size));
    left_.remove_prefix(size);
  }
  template <class Item, class Each>
  void list(std::vector<Item>& items, Each each) {
    std::uint32_t count = 0;
    value(count);
    if (count > left_.size()) return fail();  // an item takes at least a byte
    items.resize(count);
    for (auto& item : items) each(item);
  }
  void descriptor(int& fd) {
    std::int32_t place = -1;
    value(place);
    if (place >= 0 && static_cast<std::size_t>(place) >= count_) return fail();
    fd = place < 0 ? -1 : descriptors_[place];
  }
  bool complete() const { return !failed_ && left_.empty(); }

 private:
  void fail() {
    failed_ = true;
    left_ = {};
  }
  std::string_view left_;
  const int* descriptors_;
  std::size_t count_;
  bool failed_ = false;
};

}  // namespace

PlanMessage write_plan(const EnterPlan& plan) {
  Writer writer;
  writer.message.bytes.reserve(8192);
  describe(writer, const_cast<EnterPlan&>(plan));  // a writer only reads
  return std::move(writer.message);
}

Result<EnterPlan> read_plan(std::string_view bytes, const int* descriptors, std::size_t count) {
  EnterPlan plan;
  Reader reader(bytes, descriptors, count);
  describe(reader, plan);
  if (!reader.complete()) return Error(Errc::invalid_argument, "plan", EPROTO);
  return plan;
}

}  // namespace osb::enter
