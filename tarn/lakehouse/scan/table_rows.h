// TableRows: rows as the engine gives them, in the types and order of a table's columns.
#pragma once

#include <memory>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"
#include "tarn/iceberg/schema.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/lakehouse/table_writer.h"

namespace tarn::lakehouse {

/// The batch with the Arrow types of `columns`, column by column (by position). Values are shared
/// where their form is the same, else cast without loss.
/// Errors: kInvalidArgument naming the column for a value that does not fit, or NULL in a required
/// one; kUnimplemented for types that cannot be written.
Result<std::shared_ptr<arrow::RecordBatch>> AsTableRows(
    const std::vector<iceberg::SchemaField>& columns,
    const std::shared_ptr<arrow::RecordBatch>& batch);

/// The table with the columns of row lineage behind its own, as files carry them whose rows were in
/// other files before (format version 3): _row_id, _last_updated_sequence_number.
iceberg::TableMetadata WithLineageColumns(const iceberg::TableMetadata& metadata);

/// By the table's order where that is of plain top-level columns.
SortRows SortRuleOf(const iceberg::TableMetadata& metadata);

/// How rows of people are written into a table, which outlives the options: under its default spec,
/// sorted by SortRuleOf, in files of its target size.
TableWriterOptions RowWriterOptions(const iceberg::TableMetadata& metadata);

}  // namespace tarn::lakehouse
