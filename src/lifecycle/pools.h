// Named pools: kept in the store or written in the configuration, each with a shelf of spares of its own.
//
// A pool belongs to the key that made it; one made by a caller who sees everything, or by the configuration, is everybody's.
// Names are unique on the server. A pool whose image is not here keeps nothing until it is.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "base/result.h"
#include "lifecycle/spares.h"
#include "model/caller.h"
#include "model/pool.h"
#include "store/store.h"

namespace osb::lifecycle {

class Service;

struct PoolListing {
  PoolRecord pool;
  bool configured = false;    // by the configuration file
  std::size_t allocated = 0;  // sandboxes of it that live
  std::size_t available = 0;  // spares that wait
  std::string revision;       // of what its sandboxes are made from
};

class Pools {
 public:
  static constexpr std::size_t kMaxPools = 1000;

  Pools(Service& service, store::Store& store, audit::Log& audit, Spares& spares);

  Result<> start(std::vector<PoolRecord> configured);
  // The configuration was read again.
  void set_configured(std::vector<PoolRecord> configured);
  // Images, policy or bounds changed: every shelf is what its pool says now.
  void refresh();

  // All answer Errc::unsupported where nothing is made ahead of time.
  Result<> check_supported() const;
  Result<std::vector<PoolListing>> list(const Caller& caller) const;
  Result<PoolListing> get(const std::string& name, const Caller& caller) const;
  Result<PoolListing> create(PoolRecord pool, const Caller& caller);
  Result<PoolListing> resize(const std::string& name, const PoolCapacity& capacity, const Caller& caller);
  Result<> remove(const std::string& name, const Caller& caller);
  Result<std::size_t> drain(const std::string& name, const Caller& caller);  // how many go
  // What a create that names the pool is made from.
  Result<SandboxSpec> spec_of(const std::string& name, const Caller& caller) const;

 private:
  struct Row {
    PoolRecord pool;
    bool configured = false;
  };
  Result<const Row*> find(const std::string& name, const Caller& caller) const;
  Result<const Row*> changeable(const std::string& name, const Caller& caller) const;
  Result<> check_new(const PoolRecord& pool) const;
  PoolListing listing(const Row& row) const;
  std::optional<Shape> shape_of(const PoolRecord& pool) const;
  void place(const PoolRecord& pool);
  Result<> record(const Caller& caller, std::string action, const PoolRecord& pool);

  Service& service_;
  store::Store& store_;
  audit::Log& audit_;
  Spares& spares_;
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace osb::lifecycle
