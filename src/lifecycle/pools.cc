#include "lifecycle/pools.h"

#include "base/log.h"
#include "base/text.h"
#include "image/sha256.h"
#include "lifecycle/errors.h"
#include "lifecycle/service.h"
#include "model/pool_request.h"

namespace osb::lifecycle {
namespace {

Error no_such(std::string_view name) {
  return Error(Errc::not_found, cat("there is no pool ", json_string(name.substr(0, 80)))).with_code("KUBERNETES::POOL_NOT_FOUND");
}

bool may_see(const PoolRecord& pool, const Caller& caller) { return caller.sees_all || pool.owner.empty() || pool.owner == caller.name; }

Error too_many_spares(std::string_view field, std::size_t most) {
  return Error(Errc::invalid_argument, cat(field, ": this server makes at most ", most, " sandboxes ahead of time"))
      .with_code("SANDBOX::INVALID_PARAMETER")
      .at(field)
      .with_hint("lower it, or raise pool.max_spares");
}

}  // namespace

Pools::Pools(Service& service, store::Store& store, audit::Log& audit, Spares& spares)
    : service_(service), store_(store), audit_(audit), spares_(spares) {}

Result<> Pools::start(std::vector<PoolRecord> configured) {
  TRY(auto stored, store_.pools());
  for (auto& pool : stored) {
    auto name = pool.name;
    rows_.emplace(std::move(name), Row{std::move(pool), false});
  }
  set_configured(std::move(configured));
  return Ok{};
}

// A name in the file is the file's: a stored pool of that name is gone as long as it is there.
void Pools::set_configured(std::vector<PoolRecord> configured) {
  std::vector<std::string> gone;
  for (const auto& [name, row] : rows_)
    if (row.configured) gone.push_back(name);
  for (const auto& name : gone) rows_.erase(name);
  for (auto& pool : configured) {
    pool.created_at = service_.now();
    if (rows_.contains(pool.name)) log::warn("a pool of the configuration hides a stored one", {{"pool", pool.name}});
    auto name = pool.name;
    rows_.insert_or_assign(std::move(name), Row{std::move(pool), true});
  }
  for (const auto& name : gone)
    if (!rows_.contains(name)) spares_.forget(name);
  refresh();
}

void Pools::refresh() {
  if (!spares_.supported()) return;
  for (const auto& [name, row] : rows_) place(row.pool);
}

void Pools::place(const PoolRecord& pool) {
  auto shape = shape_of(pool);
  if (!shape) return spares_.forget(pool.name);
  auto image = service_.source_image(pool.spec, Caller{"system", true, ""});
  spares_.keep(*shape, pool.capacity, image ? service_.hold_image(*image) : nullptr);
}

// nullopt while its image is not here or the server does not allow its policy.
std::optional<Shape> Pools::shape_of(const PoolRecord& pool) const {
  auto image = service_.source_image(pool.spec, Caller{"system", true, ""});
  if (!image || !service_.check_policy(pool.spec)) return std::nullopt;
  return Shape{pool.name, service_.image_for(pool.spec.image), image->digest, pool.spec.policy, pool.spec.limits};
}

Result<> Pools::check_supported() const {
  if (spares_.supported()) return Ok{};
  return Error(Errc::unsupported, "Pools are not available with this runtime.").with_code("KUBERNETES::POOL_NOT_SUPPORTED");
}

Result<const Pools::Row*> Pools::find(const std::string& name, const Caller& caller) const {
  CHECK_OK(check_supported());
  auto found = rows_.find(name);
  if (found == rows_.end() || !may_see(found->second.pool, caller)) return no_such(name);
  return &found->second;
}

Result<const Pools::Row*> Pools::changeable(const std::string& name, const Caller& caller) const {
  TRY(const auto* row, find(name, caller));
  if (row->configured)
    return Error(Errc::permission_denied, cat("pool ", name, " is part of the server's configuration"))
        .with_hint("change `pools` in the configuration file and reload the server");
  if (row->pool.owner.empty() && !caller.sees_all)
    return Error(Errc::permission_denied, "The pool is everybody's; only a key that sees all sandboxes may change it.");
  return row;
}

PoolListing Pools::listing(const Row& row) const {
  PoolListing out{row.pool, row.configured, service_.allocated(row.pool.name), 0, ""};
  if (auto facts = spares_.facts_of(row.pool.name)) out.available = facts->ready;
  auto shape = shape_of(row.pool);
  const auto& limits = row.pool.spec.limits;
  auto made_from = cat(row.pool.spec.image, " ", shape ? shape->image_digest : std::string(), " ", limits.memory_bytes, " ",
                       limits.cpu_millis, " ", limits.pids, " ", limits.disk_bytes, " ", name_of(row.pool.spec.policy.user), " ",
                       name_of(row.pool.spec.policy.syscalls), " ", row.pool.spec.policy.root == RootMode::read_only ? "ro" : "rw");
  out.revision = image::sha256_hex(made_from).substr(0, 12);
  return out;
}

Result<std::vector<PoolListing>> Pools::list(const Caller& caller) const {
  CHECK_OK(check_supported());
  std::vector<PoolListing> out;
  for (const auto& [name, row] : rows_)
    if (may_see(row.pool, caller)) out.push_back(listing(row));
  return out;
}

Result<PoolListing> Pools::get(const std::string& name, const Caller& caller) const {
  TRY(const auto* row, find(name, caller));
  return listing(*row);
}

Result<SandboxSpec> Pools::spec_of(const std::string& name, const Caller& caller) const {
  auto row = find(name, caller);
  if (!row) return std::move(row).error().at("extensions.poolRef");
  return (*row)->pool.spec;
}

Result<> Pools::check_new(const PoolRecord& pool) const {
  if (rows_.size() >= kMaxPools)
    return Error(Errc::exhausted, cat("this server keeps at most ", kMaxPools, " pools")).with_code("SANDBOX::LIMIT_REACHED");
  CHECK_OK(service_.check_policy(pool.spec));
  auto image = service_.source_image(pool.spec, Caller{"system", true, ""});
  bool comes = !image && service_.may_pull(service_.image_for(pool.spec.image), image.error());  // with the first create
  if (!image && !comes) return std::move(image).error().at("template.image");
  if (pool.capacity.buffer_min > spares_.options().most) return too_many_spares("capacitySpec.bufferMin", spares_.options().most);
  return Ok{};
}

Result<PoolListing> Pools::create(PoolRecord pool, const Caller& caller) {
  CHECK_OK(check_supported());
  if (rows_.contains(pool.name))
    return Error(Errc::conflict, cat("there is a pool ", pool.name, " already")).with_code("KUBERNETES::POOL_ALREADY_EXISTS").at("name");
  CHECK_OK(check_new(pool));
  pool.owner = caller.sees_all ? "" : caller.name;
  pool.created_at = service_.now();
  CHECK_OK(record(caller, "pool.create", pool));
  if (auto stored = store_.put_pool(pool); !stored)
    return std::move(stored).error().with_code("KUBERNETES::POOL_API_ERROR").in("store pool");
  place(pool);
  auto name = pool.name;
  return listing(rows_.emplace(std::move(name), Row{std::move(pool), false}).first->second);
}

Result<PoolListing> Pools::resize(const std::string& name, const PoolCapacity& capacity, const Caller& caller) {
  TRY([[maybe_unused]] const auto* row, changeable(name, caller));
  if (capacity.buffer_min > spares_.options().most) return too_many_spares("capacitySpec.bufferMin", spares_.options().most);
  auto changed = rows_.at(name).pool;
  changed.capacity = capacity;
  CHECK_OK(record(caller, "pool.resize", changed));
  if (auto stored = store_.put_pool(changed); !stored)
    return std::move(stored).error().with_code("KUBERNETES::POOL_API_ERROR").in("store pool");
  place(changed);
  rows_.at(name).pool = std::move(changed);
  return listing(rows_.at(name));
}

Result<> Pools::remove(const std::string& name, const Caller& caller) {
  TRY(const auto* row, changeable(name, caller));
  CHECK_OK(record(caller, "pool.delete", row->pool));
  if (auto erased = store_.erase_pool(name); !erased)
    return std::move(erased).error().with_code("KUBERNETES::POOL_API_ERROR").in("remove pool");
  spares_.forget(name);
  rows_.erase(rows_.find(name));
  return Ok{};
}

Result<std::size_t> Pools::drain(const std::string& name, const Caller& caller) {
  TRY(const auto* row, find(name, caller));
  if (row->pool.owner.empty() && !caller.sees_all)
    return Error(Errc::permission_denied, "The pool is everybody's; only a key that sees all sandboxes may drain it.");
  CHECK_OK(record(caller, "pool.drain", row->pool));
  auto facts = spares_.facts_of(name);
  spares_.empty(name);
  return facts ? facts->ready : 0;
}

Result<> Pools::record(const Caller& caller, std::string action, const PoolRecord& pool) {
  const auto& size = pool.capacity;
  auto done = audit_.record(caller, {std::move(action),
                                     "",
                                     "ok",
                                     {{"pool", pool.name},
                                      {"image", pool.spec.image},
                                      {"buffer", cat(size.buffer_min, "..", size.buffer_max)},
                                      {"size", cat(size.pool_min, "..", size.pool_max)}}});
  if (!done) return std::move(done).error().in("audit");
  return Ok{};
}

}  // namespace osb::lifecycle
