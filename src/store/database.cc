#include "store/database.h"

#include "base/text.h"

namespace osb::store {
namespace {

constexpr int kBusyMillis = 2000;

Errc kind_of(int rc) {
  switch (rc & 0xFF) {
    case SQLITE_FULL: return Errc::exhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Errc::conflict;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return Errc::permission_denied;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR: return Errc::unavailable;
    default: return Errc::internal;
  }
}

std::string_view way_out(int rc) {
  switch (rc & 0xFF) {
    case SQLITE_FULL: return "free space on the disk that holds storage.state_dir";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return "restore the file from a copy, or move it away to start empty; running sandboxes are then removed";
    case SQLITE_READONLY:
    case SQLITE_PERM: return "make the file and its directory writable for this user";
    default: return "";
  }
}

Error fail(sqlite3* db, int rc) {
  const char* file = sqlite3_db_filename(db, "main");
  auto where = file != nullptr && *file != '\0' ? std::string(file) : std::string("database");
  int sys = sqlite3_system_errno(db);
  auto what = cat(where, ": ", std::string_view(sqlite3_errstr(rc & 0xFF)), " (", std::string_view(sqlite3_errmsg(db)), ")");
  return Error(kind_of(rc), std::move(what), sys).with_hint(way_out(rc));
}

}  // namespace

Statement& Statement::bind(int at, std::string_view text) {
  sqlite3_bind_text64(raw_.get(), at, text.data() == nullptr ? "" : text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(int at, std::int64_t number) {
  sqlite3_bind_int64(raw_.get(), at, number);
  return *this;
}

Statement& Statement::bind_null(int at) {
  sqlite3_bind_null(raw_.get(), at);
  return *this;
}

Result<bool> Statement::step() {
  int rc = sqlite3_step(raw_.get());
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  auto error = fail(sqlite3_db_handle(raw_.get()), rc);
  reset();
  return error;
}

Result<> Statement::run() {
  for (;;) {
    TRY(bool row, step());
    if (!row) break;
  }
  reset();
  return Ok{};
}

void Statement::reset() {
  sqlite3_reset(raw_.get());
  sqlite3_clear_bindings(raw_.get());
}

std::string Statement::text(int column) const {
  const auto* bytes = sqlite3_column_text(raw_.get(), column);
  auto size = sqlite3_column_bytes(raw_.get(), column);
  return bytes == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

Result<Database> Database::open(const std::string& path, Mode mode) {
  // One thread uses it; SQLite's own locks around every call would only cost time.
  // Nobody asks how much memory it has, and it would take a lock for every allocation to know.
  [[maybe_unused]] static const int uncounted = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (mode == Mode::create ? SQLITE_OPEN_CREATE : 0);
  sqlite3* raw = nullptr;
  int rc = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database db;
  db.raw_.reset(raw);
  if (raw == nullptr) return Error(Errc::exhausted, "no memory for the database");
  if (rc != SQLITE_OK) return fail(raw, rc).in(cat("open ", path));
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyMillis);
  return db;
}

Result<> Database::exec(const std::string& sql) {
  int rc = sqlite3_exec(raw_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return fail(raw_.get(), rc);
  return Ok{};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  int rc = sqlite3_prepare_v3(raw_.get(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (rc != SQLITE_OK) return fail(raw_.get(), rc);
  return Statement(raw);
}

Result<std::int64_t> Database::number(const std::string& sql) {
  TRY(auto statement, prepare(sql));
  TRY(bool row, statement.step());
  return row ? statement.number(0) : 0;
}

Result<std::string> Database::text(const std::string& sql) {
  TRY(auto statement, prepare(sql));
  TRY(bool row, statement.step());
  return row ? statement.text(0) : std::string();
}

}  // namespace osb::store
