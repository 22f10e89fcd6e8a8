#include "store/migrations.h"

#include <iterator>
#include <string_view>

#include "base/text.h"

namespace osb::store {
namespace {

// Step i leads from version i to i + 1.
constexpr std::string_view kSteps[] = {
    // `spec` is JSON (codec.h); `sum` covers every other column, because SQLite notices damage of its own
    // structure but not of a value.
    R"(CREATE TABLE sandboxes(
         id TEXT PRIMARY KEY NOT NULL,
         owner TEXT NOT NULL,
         state TEXT NOT NULL,
         reason TEXT NOT NULL,
         message TEXT NOT NULL,
         changed_at INTEGER NOT NULL,
         created_at INTEGER NOT NULL,
         expires_at INTEGER,
         deadline_boot_nanos INTEGER NOT NULL,
         boot_id TEXT NOT NULL,
         spec TEXT NOT NULL,
         sum INTEGER NOT NULL
       ) STRICT, WITHOUT ROWID;)",
    R"(CREATE TABLE images(
         name TEXT PRIMARY KEY NOT NULL,
         digest TEXT NOT NULL,
         layers TEXT NOT NULL,
         config_json TEXT NOT NULL,
         size_bytes INTEGER NOT NULL,
         created_at INTEGER NOT NULL
       ) STRICT, WITHOUT ROWID;)",
    R"(CREATE TABLE create_keys(
         owner TEXT NOT NULL,
         key TEXT NOT NULL,
         fingerprint TEXT NOT NULL,
         sandbox TEXT NOT NULL,
         created_at INTEGER NOT NULL,
         PRIMARY KEY(owner, key)
       ) STRICT, WITHOUT ROWID;)",
    R"(CREATE TABLE snapshots(
         id TEXT PRIMARY KEY NOT NULL,
         sandbox TEXT NOT NULL,
         owner TEXT NOT NULL,
         name TEXT NOT NULL,
         state TEXT NOT NULL,
         reason TEXT NOT NULL,
         message TEXT NOT NULL,
         changed_at INTEGER NOT NULL,
         created_at INTEGER NOT NULL,
         image_name TEXT NOT NULL,
         image_digest TEXT NOT NULL,
         size_bytes INTEGER NOT NULL,
         entries INTEGER NOT NULL
       ) STRICT, WITHOUT ROWID;
       CREATE TABLE volumes(
         id TEXT PRIMARY KEY NOT NULL,
         owner TEXT NOT NULL,
         name TEXT NOT NULL,
         size_bytes INTEGER NOT NULL,
         on_demand INTEGER NOT NULL,
         created_at INTEGER NOT NULL,
         UNIQUE(owner, name)
       ) STRICT, WITHOUT ROWID;)",
    // `spec` is JSON as in sandboxes.
    R"(CREATE TABLE pools(
         name TEXT PRIMARY KEY NOT NULL,
         owner TEXT NOT NULL,
         spec TEXT NOT NULL,
         buffer_min INTEGER NOT NULL,
         buffer_max INTEGER NOT NULL,
         pool_min INTEGER NOT NULL,
         pool_max INTEGER NOT NULL,
         created_at INTEGER NOT NULL
       ) STRICT, WITHOUT ROWID;)",
};

}  // namespace

std::int64_t latest_version() { return static_cast<std::int64_t>(std::size(kSteps)); }

Result<> migrate(Database& db) {
  TRY(auto version, db.number("PRAGMA user_version"));
  if (version > latest_version() || version < 0)
    return Error(Errc::unsupported, cat("the database has schema ", version, ", this program knows up to ", latest_version()))
        .with_hint("it was written by a newer opensandbox: upgrade this one, or use another storage.state_dir");
  for (; version < latest_version(); ++version) {
    auto step = cat("BEGIN IMMEDIATE;", kSteps[version], "PRAGMA user_version=", version + 1, ";COMMIT;");
    if (auto done = db.exec(step); !done) {
      auto error = std::move(done).error().in(cat("migrate to schema ", version + 1));
      [[maybe_unused]] auto rolled_back = db.exec("ROLLBACK");
      return error;
    }
  }
  return Ok{};
}

}  // namespace osb::store
