// Volumes: those of the host behind the operator's list, and named ones that outlive the sandboxes that share them.
//
// A named volume belongs to the key that made it; one made by a caller who sees everything is everybody's. Its record is made
// first, its image when a sandbox mounts it for the first time.
#pragma once
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/task.h"
#include "async/task_group.h"
#include "audit/audit.h"
#include "base/result.h"
#include "model/caller.h"
#include "model/sandbox.h"
#include "model/volume.h"
#include "runtime/runtime.h"
#include "store/store.h"

namespace osb::lifecycle {

class Service;

struct VolumeOptions {
  std::vector<std::string> allowed_host_paths;  // empty = none
  std::uint64_t default_bytes = 1ull << 30;
};

struct VolumeListing {
  Volume volume;
  std::size_t sandboxes = 0;  // that live and use it
};

class Volumes {
 public:
  static constexpr std::size_t kMaxVolumesKept = 10'000;

  Volumes(asio::io_context& io, Service& service, store::Store& store, audit::Log& audit, runtime::Runtime& runtime, VolumeOptions options);

  Result<> start();
  Task<void> stop();
  void set_options(VolumeOptions options) { options_ = std::move(options); }

  // The volumes of a sandbox about to be made, ready to be mounted. As long as it lives nobody removes them.
  class Opened {
   public:
    std::vector<VolumeSpec> specs;  // with the ids of named volumes
    std::vector<runtime::VolumeMount> mounts;
    std::vector<std::string> made;  // ids of named volumes that were made for this sandbox

    Opened() = default;
    Opened(Opened&&) noexcept = default;
    Opened& operator=(Opened&&) = delete;
    ~Opened();

   private:
    friend class Volumes;
    std::shared_ptr<std::multiset<std::string>> opening;
  };
  Task<Result<Opened>> open(std::vector<VolumeSpec> specs, Caller caller);
  void undo(const Opened& opened);                               // the sandbox was not made
  void release(const std::string& id, const SandboxSpec& spec);  // the sandbox has ended

  std::vector<VolumeListing> list(const Caller& caller) const;
  Result<Volume> create(const std::string& name, std::uint64_t size_bytes, const Caller& caller);
  Result<> remove(const std::string& name, const Caller& caller);

 private:
  const Volume* find(const std::string& name, const Caller& caller) const;
  Result<Volume> add(const std::string& name, std::uint64_t size_bytes, bool on_demand, const Caller& caller);
  Result<> take_named(VolumeSpec& spec, Opened& opened, const Caller& caller);
  bool in_use(const std::string& id) const;
  void drop(const std::string& id);
  Task<void> remove_image(std::string id);

  Service& service_;
  store::Store& store_;
  audit::Log& audit_;
  runtime::Runtime& runtime_;
  VolumeOptions options_;
  std::map<std::string, Volume> rows_;                                                                    // by id
  std::shared_ptr<std::multiset<std::string>> opening_ = std::make_shared<std::multiset<std::string>>();  // ids, creates under way
  asio::thread_pool workers_{1};
  TaskGroup tasks_;
};

}  // namespace osb::lifecycle
