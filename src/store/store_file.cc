#include "store/store_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/text.h"
#include "store/migrations.h"

namespace osb::store {
namespace {

constexpr std::string_view kDamagedHint =
    "restore the file from a copy, or move it away to start empty; running sandboxes are then removed";

Errc kind_of(int sys) {
  if (sys == ENOSPC || sys == EDQUOT) return Errc::exhausted;
  if (sys == EACCES || sys == EPERM || sys == EROFS) return Errc::permission_denied;
  return Errc::unavailable;
}

Error os_error(std::string what, int sys) {
  auto kind = kind_of(sys);
  auto error = Error::from_errno(std::move(what), sys, kind);
  if (kind == Errc::permission_denied)
    return std::move(error).with_hint("make the file and its directory writable for this user, or use another storage.state_dir");
  return error;
}

Error damaged(const std::string& path, std::string_view how) { return Error(Errc::internal, cat(path, ": ", how)).with_hint(kDamagedHint); }

std::string holder_of(int lock) {
  char text[32] = {};
  auto n = ::pread(lock, text, sizeof text - 1, 0);
  return n > 0 ? cat(" (process ", trim(std::string_view(text, static_cast<std::size_t>(n))), ")") : std::string();
}

Result<Fd> take_lock(const std::string& path) {
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return os_error(cat("open ", path), errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return Error(Errc::conflict, cat("another opensandbox", holder_of(lock.get()), " uses this state directory: ", path, " is locked"))
        .with_hint("stop the other server, or give this one its own storage.state_dir");
  // Only for the message above; a disk too full for it is told by the database itself.
  auto pid = cat(::getpid());
  if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), pid.data(), pid.size(), 0) < 0) return lock;
  return lock;
}

// Built beside and renamed, so that an empty or half-made file at `path` is always damage and never a first start.
Result<> build_new(const std::string& path) {
  auto draft = path + ".new";
  for (std::string_view suffix : {"", "-journal", "-wal", "-shm"}) ::unlink(cat(draft, suffix).c_str());
  Fd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return os_error(cat("create ", draft), errno);
  file.reset();
  {
    TRY(auto db, Database::open(draft, Database::Mode::existing));
    // Nobody sees the draft before it has its name, so it is flushed once at the end and not after every step.
    CHECK_OK(db.exec("PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL;"));
    CHECK_OK(db.exec(cat("PRAGMA application_id=", kApplicationId)));
    CHECK_OK(migrate(db));
  }
  file.reset(::open(draft.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file || ::fdatasync(file.get()) != 0) return os_error(cat("flush ", draft), errno);
  if (std::rename(draft.c_str(), path.c_str()) != 0) return os_error(cat("rename ", draft), errno);
  return Ok{};
}

Result<> check_ours(Database& db, const std::string& path) {
  TRY(auto application, db.number("PRAGMA application_id"));
  if (application != kApplicationId) return damaged(path, "this is a SQLite database, but not one of opensandbox");
  return Ok{};
}

Result<> check_whole(Database& db, const std::string& path) {
  TRY(auto verdict, db.text("PRAGMA quick_check(1)"));
  if (verdict != "ok") return damaged(path, cat("the database is damaged: ", verdict));
  return Ok{};
}

Result<> prepare_to_write(Database& db) {
  // Nobody else opens the file (take_lock): the locks of each transaction, six calls, are taken once.
  TRY(auto locking, db.text("PRAGMA locking_mode=EXCLUSIVE"));
  if (locking != "exclusive") return Error(Errc::internal, cat("locking mode ", locking));
  TRY(auto mode, db.text("PRAGMA journal_mode=WAL"));
  if (mode != "wal")
    return Error(Errc::unavailable, cat("the file system of the state directory cannot do write-ahead logging (", mode, ")"));
  // NORMAL: a commit survives the death of this process; after a power cut the last ones may be missing, which the
  // reconciliation at start heals as it heals any other difference.
  return db.exec("PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=4194304; PRAGMA temp_store=MEMORY;");
}

Result<> create_if_missing(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) return damaged(path, "is not a regular file");
    if (info.st_size == 0) return damaged(path, "the database is empty; it was cut off");
    return Ok{};
  }
  if (errno != ENOENT) return os_error(cat("stat ", path), errno);
  if (::access((path + "-wal").c_str(), F_OK) == 0) return damaged(path, "the database is missing, but its write-ahead log is there");
  return build_new(path);
}

}  // namespace

Result<StoreFile> open_store_file(const std::string& path) {
  TRY(auto lock, take_lock(path + ".lock"));
  CHECK_OK(create_if_missing(path));
  TRY(auto db, Database::open(path, Database::Mode::existing));
  if (db.read_only())
    return Error(Errc::permission_denied, cat(path, " is read-only"))
        .with_hint("make the file and its directory writable for this user, or use another storage.state_dir");
  CHECK_OK(check_ours(db, path));
  if (auto known = db.number("PRAGMA user_version"); known && *known <= latest_version()) CHECK_OK(check_whole(db, path));
  CHECK_OK(prepare_to_write(db));
  if (auto migrated = migrate(db); !migrated) return std::move(migrated).error().in(path);
  return StoreFile{std::move(lock), std::move(db)};
}

}  // namespace osb::store
