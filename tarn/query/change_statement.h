// ChangeStatement: DELETE, UPDATE, INSERT, MERGE, CREATE TABLE AS, CREATE SCHEMA and DROP of
// people, taken apart by their words. Pure.
//
// The engine's parser knows no tables of ours and its sandbox changes nothing, so each statement is
// split into the table it changes and SELECTs that give what to change; those are checked and run
// as any other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::query {

/// DELETE FROM name [AS alias] [WHERE condition]
struct DeleteStatement {
  std::vector<std::string> table;  // Parts of its name, unquoted.
  std::string alias{};             // As written, empty without.
  std::string condition{};         // "true" when there is none.
};

/// UPDATE name [AS alias] SET column = expression, … [WHERE condition]
struct UpdateStatement {
  std::vector<std::string> table;
  std::string alias{};
  std::vector<std::pair<std::string, std::string>> assignments{};  // Column (unquoted), expression.
  std::string condition{};
};

/// INSERT INTO name [(column, …)] SELECT … or VALUES …
struct InsertStatement {
  std::vector<std::string> table;
  std::vector<std::string> columns{};  // Unquoted; empty = all, in their order.
  std::string select{};
};

/// WHEN [NOT] MATCHED [BY TARGET | BY SOURCE] [AND condition] THEN action
struct MergeClause {
  enum class Rows : uint8_t { kMatched, kNotMatched, kNotMatchedBySource };
  enum class Action : uint8_t { kNothing, kDelete, kUpdate, kInsert };
  Rows rows = Rows::kMatched;
  Action action = Action::kNothing;
  std::string condition = "true";
  bool by_name =
      false;  // SET * and INSERT *: all columns, from those of their names in the source.
  // kUpdate: column (unquoted), expression.
  std::vector<std::pair<std::string, std::string>> assignments{};
  std::vector<std::string> columns{};  // kInsert: unquoted; empty = all, in their order.
  std::vector<std::string> values{};   // kInsert: an expression each.
};

/// MERGE INTO name [AS alias] USING source [AS alias] ON condition WHEN …
struct MergeStatement {
  std::vector<std::string> table;
  std::string alias{};
  std::string source{};        // As it can stand after FROM.
  std::string source_alias{};  // As written; of a name without alias its last part.
  std::string condition{};
  std::vector<MergeClause> clauses{};  // The first that fits a row is what happens to it.
};

/// CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [PARTITIONED BY (…)] [TBLPROPERTIES (…)] AS
/// SELECT …
struct CreateTableStatement {
  struct PartitionTerm {
    std::string transform = "identity";  // As the table format writes it: bucket[16], day.
    std::string column;                  // Unquoted.
  };
  std::vector<std::string> table;
  bool if_not_exists = false;
  bool or_replace = false;  // One that is there becomes this one, with its history.
  std::vector<PartitionTerm> partitioning{};
  std::map<std::string, std::string> properties{};
  std::string select{};
};

/// CREATE SCHEMA [IF NOT EXISTS] name
struct CreateSchemaStatement {
  std::vector<std::string> name;
  bool if_not_exists = false;
};

/// DROP TABLE [IF EXISTS] name [PURGE], DROP VIEW [IF EXISTS] name, DROP SCHEMA [IF EXISTS] name
struct DropStatement {
  enum class Kind : uint8_t { kTable, kView, kSchema };
  Kind kind = Kind::kTable;
  std::vector<std::string> name;
  bool if_exists = false;
  bool purge = false;  // The files of a table go, too.
};

using ChangeStatement =
    std::variant<DeleteStatement, UpdateStatement, InsertStatement, MergeStatement,
                 CreateTableStatement, CreateSchemaStatement, DropStatement>;

/// True when the text begins with DELETE, UPDATE, INSERT, MERGE, CREATE or DROP.
bool IsChange(std::string_view sql);

/// Errors: kInvalidArgument saying what is missing or not known, also for RETURNING, USING, FROM,
/// ON CONFLICT, struct members and several statements.
Result<ChangeStatement> ParseChange(std::string_view sql);

}  // namespace tarn::query
