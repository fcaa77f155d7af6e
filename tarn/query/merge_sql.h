// MergeSql: one MERGE as a SELECT over the rows of its table and its source. Pure.
#pragma once

#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/schema.h"
#include "tarn/query/change_statement.h"

namespace tarn::query {

/// Index of the column of that name, which is compared without case.
/// Errors: kInvalidArgument naming `table`.
Result<size_t> ColumnIndex(const std::vector<iceberg::SchemaField>& columns,
                           const std::string& table, const std::string& name);
/// What a row has in a column that it is not given a value for, as SQL: the column's write default
/// or NULL. Errors: kUnimplemented for defaults of nested types.
Result<std::string> MissingValueSql(const iceberg::SchemaField& column);

struct MergeTarget {
  std::string table;                          // For messages.
  std::string rows;                           // After FROM: the rows with _file and _pos, as …
  std::string alias;                          // … this name.
  std::vector<iceberg::SchemaField> columns;  // Top-level columns of the table.
  bool with_lineage = false;                  // Rows keep their _row_id.
};

/// A SELECT with the columns _file, _pos (NULL for rows to insert), the number of the clause of the
/// row from 1 (INTEGER), a value for each column (of rows to insert or to update), and with lineage
/// _row_id and a NULL. Rows without a clause, or with one that does nothing, are left out.
/// Errors: kInvalidArgument for columns that the table does not have, that are set twice or have
/// another number of values; kUnimplemented for types that SQL cannot read.
Result<std::string> MergeSql(const MergeStatement& statement, const MergeTarget& target);

}  // namespace tarn::query
