// BundleTables: what a bundle asks a database beyond the SQL that all of them understand. Private
// to this room.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/metastore/database.h"

namespace tarn::metastore {

/// Where SQLite keeps the newest automatic id of each table, in the columns name and seq: an id
/// must not be given twice. A bundle has it as a table, also one of another database.
inline constexpr std::string_view kSequences = "sqlite_sequence";

/// Stateless. Threads: any.
class BundleTables {
 public:
  /// The questions for `database`.
  static const BundleTables& Of(const Database& database);
  virtual ~BundleTables() = default;

  /// All tables by name, but for the records of migrations and writers.
  virtual Result<std::vector<std::string>> ReadTables(SqlTransaction& sql) const = 0;
  virtual Result<std::vector<std::string>> ReadColumns(SqlTransaction& sql,
                                                       const std::string& table) const = 0;
  /// A query of all rows of a table: for each column its kind ("null", "integer", "real", "text",
  /// "blob"), then its value.
  [[nodiscard]] virtual std::string SelectText(const std::string& table,
                                               const std::vector<std::string>& columns) const = 0;
  /// A statement that puts a row into a table, one argument per column.
  [[nodiscard]] virtual std::string InsertText(const std::string& table,
                                               const std::vector<std::string>& columns) const = 0;
  /// Makes the tables of an empty `database` and calls `rows` to fill them, in one SQL transaction
  /// where tables can be made in one with rows. Errors: those of Migrate and of `rows`.
  virtual Status MakeAndFill(Database& database, const std::vector<Migration>& steps,
                             const SqlFunction& rows) const = 0;
  /// Before rows are put in, in any order: references are checked at the end.
  virtual Status BeginRows(SqlTransaction& sql) const = 0;
  /// What a migration may have put into a table goes.
  virtual Status Clear(SqlTransaction& sql, const std::string& table) const = 0;
  /// After all rows: no id that is in a table is given again.
  virtual Status EndRows(SqlTransaction& sql) const = 0;
};

}  // namespace tarn::metastore
