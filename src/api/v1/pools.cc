// Named pools, and what all pools did.
#include "api/json_text.h"
#include "api/v1/handlers.h"
#include "base/text.h"
#include "http/http.h"
#include "model/pool_request.h"

namespace osb::api::v1 {
namespace {

using lifecycle::PoolListing;
using lifecycle::Spares;

std::string capacity_json(const PoolCapacity& capacity) {
  ObjectText text;
  text.add("bufferMin", capacity.buffer_min).add("bufferMax", capacity.buffer_max);
  text.add("poolMin", capacity.pool_min).add("poolMax", capacity.pool_max);
  return std::move(text).done();
}

std::string pool_json(const PoolListing& listing) {
  ObjectText status, text;
  status.add("total", listing.allocated + listing.available).add("allocated", listing.allocated);
  status.add("available", listing.available).add("revision", listing.revision);
  text.add("name", listing.pool.name).raw("capacitySpec", capacity_json(listing.pool.capacity));
  text.raw("status", std::move(status).done()).add("createdAt", format_rfc3339(listing.pool.created_at));
  text.add("image", listing.pool.spec.image).add("shared", listing.pool.owner.empty()).add("configured", listing.configured);
  return std::move(text).done();
}

void add_count(ObjectText& text, const Spares::Count& count) {
  text.add("hits", count.hits).add("misses", count.misses).add("made", count.made);
  text.add("lost", count.lost).add("expired", count.expired);
}

std::string shape_json(const Spares::Facts& facts) {
  const auto& shape = facts.shape;
  ObjectText text;
  text.add_unless_empty("pool", shape.pool).add("image", shape.image).add("digest", shape.image_digest);
  text.add("memoryBytes", shape.limits.memory_bytes).add("cpuMillis", shape.limits.cpu_millis);
  text.add("diskBytes", shape.limits.disk_bytes).add("pids", shape.limits.pids);
  text.add("mode", name_of(shape.policy.user)).add("syscalls", name_of(shape.policy.syscalls));
  text.add("root", shape.policy.root == RootMode::read_only ? "ro" : "rw");
  text.add("available", facts.ready).add("making", facts.making).add("wanted", facts.wanted);
  add_count(text, facts.count);
  return std::move(text).done();
}

std::string stats_json(const Spares& spares) {
  ObjectText text;
  std::size_t ready = 0;
  std::string shapes;
  for (const auto& facts : spares.facts()) {
    ready += facts.ready;
    shapes += cat(shapes.empty() ? "" : ",", shape_json(facts));
  }
  text.add("automatic", spares.options().automatic && spares.supported()).add("maxSpares", spares.options().most).add("available", ready);
  add_count(text, spares.count());
  text.raw("shapes", cat("[", shapes, "]"));
  return std::move(text).done();
}

// Text of the exposition format: quotes, backslashes and line ends are escaped.
std::string label(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '\n' ? "\\n" : std::string(1, c);
  return out;
}

std::string stats_text(const Spares& spares) {
  auto count = spares.count();
  const std::pair<std::string_view, std::uint64_t> kTotals[] = {
      {"hits", count.hits}, {"misses", count.misses}, {"made", count.made}, {"lost", count.lost}, {"expired", count.expired}};
  std::string out;
  for (const auto& [name, value] : kTotals)
    out += cat("# TYPE opensandbox_pool_", name, "_total counter\nopensandbox_pool_", name, "_total ", value, "\n");
  out += "# TYPE opensandbox_pool_available gauge\n";
  for (const auto& facts : spares.facts())
    out += cat("opensandbox_pool_available{pool=\"", label(facts.shape.pool), "\",image=\"", label(facts.shape.image), "\",memory=\"",
               facts.shape.limits.memory_bytes, "\",cpu_millis=\"", facts.shape.limits.cpu_millis, "\",mode=\"",
               name_of(facts.shape.policy.user), "\"} ", facts.ready, "\n");
  return out;
}

Result<> only_who_sees_all(const Call& call) {
  if (call.caller.sees_all) return Ok{};
  return Error(Errc::permission_denied, "Only a key that sees all sandboxes may look at or empty all pools.");
}

std::string drained_json(std::size_t count) {
  ObjectText text;
  text.add("drained", count);
  return std::move(text).done();
}

}  // namespace

Reply list_pools(Context& context, Call call) {
  CO_TRY(auto pools, context.lifecycle.pools().list(call.caller));
  std::string items;
  for (const auto& pool : pools) items += cat(items.empty() ? "" : ",", pool_json(pool));
  co_return http::Response::json(200, cat("{\"items\":[", items, "]}"));
}

Reply create_pool(Context& context, Call call) {
  if (auto there = context.lifecycle.pools().check_supported(); !there) co_return std::move(there).error();
  CO_TRY(auto pool, parse_pool(call.body, context.options.defaults));
  CO_TRY(auto made, context.lifecycle.pools().create(std::move(pool), call.caller));
  co_return http::Response::json(201, pool_json(made));
}

Reply get_pool(Context& context, Call call) {
  CO_TRY(auto pool, context.lifecycle.pools().get(std::string(call.param("name")), call.caller));
  co_return http::Response::json(200, pool_json(pool));
}

Reply resize_pool(Context& context, Call call) {
  // A pool that does not exist is the first thing to say.
  CO_TRY([[maybe_unused]] auto there, context.lifecycle.pools().get(std::string(call.param("name")), call.caller));
  CO_TRY(auto capacity, parse_pool_resize(call.body));
  CO_TRY(auto pool, context.lifecycle.pools().resize(std::string(call.param("name")), capacity, call.caller));
  co_return http::Response::json(200, pool_json(pool));
}

Reply delete_pool(Context& context, Call call) {
  CO_TRY([[maybe_unused]] auto done, context.lifecycle.pools().remove(std::string(call.param("name")), call.caller));
  co_return http::Response::empty(204);
}

Reply drain_pool(Context& context, Call call) {
  CO_TRY(auto count, context.lifecycle.pools().drain(std::string(call.param("name")), call.caller));
  co_return http::Response::json(200, drained_json(count));
}

Reply drain_pools(Context& context, Call call) {
  if (auto allowed = only_who_sees_all(call); !allowed) co_return std::move(allowed).error();
  co_return http::Response::json(200, drained_json(context.lifecycle.spares().drain_automatic()));
}

Reply pool_stats(Context& context, Call call) {
  if (auto allowed = only_who_sees_all(call); !allowed) co_return std::move(allowed).error();
  const auto& spares = context.lifecycle.spares();
  if (call.request.headers.get("Accept").find("text/plain") == std::string_view::npos)
    co_return http::Response::json(200, stats_json(spares));
  http::Response response;
  response.status = 200;
  response.headers.add("Content-Type", "text/plain; version=0.0.4");
  response.body = stats_text(spares);
  co_return response;
}

}  // namespace osb::api::v1
