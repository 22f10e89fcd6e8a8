// SQLite behind two owners: Database and Statement. Every failure is a Result that names the file.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace osb::store {

// Bound values are not copied: they live until the next reset().
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* raw) : raw_(raw) {}

  Statement& bind(int at, std::string_view text);
  Statement& bind(int at, std::int64_t number);
  Statement& bind_null(int at);
  // true: a row is there to read. false: done.
  Result<bool> step();
  Result<> run();  // step to the end, then reset
  void reset();

  std::string text(int column) const;
  std::int64_t number(int column) const { return sqlite3_column_int64(raw_.get(), column); }
  bool is_null(int column) const { return sqlite3_column_type(raw_.get(), column) == SQLITE_NULL; }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* raw) const { sqlite3_finalize(raw); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> raw_;
};

class Database {
 public:
  enum class Mode { existing, create };
  static Result<Database> open(const std::string& path, Mode mode);

  Result<> exec(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  Result<std::int64_t> number(const std::string& sql);  // first column of the first row
  Result<std::string> text(const std::string& sql);
  bool read_only() const { return sqlite3_db_readonly(raw_.get(), "main") == 1; }

 private:
  struct Close {
    void operator()(sqlite3* raw) const { sqlite3_close_v2(raw); }
  };
  std::unique_ptr<sqlite3, Close> raw_;
};

}  // namespace osb::store
