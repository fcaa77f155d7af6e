// The Iceberg views of a target as metadata: one representation per SQL dialect.
#pragma once

#include <string>

#include "tarn/base/status.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/iceberg/view_metadata.h"
#include "tarn/lakehouse/table_spec.h"
#include "tarn/lakehouse/view_origin.h"
#include "tarn/lakehouse/view_sql.h"

namespace tarn::lakehouse {

/// Text of a view over the internal table by its two-part name.
Result<std::string> TableViewSql(const TableSpec& spec, const iceberg::Schema& internal,
                                 TableView view, SqlDialect dialect);

/// Columns of a view with the ids of the internal table; the current view starts with the spec's
/// view headers.
iceberg::Schema TableViewSchema(const TableSpec& spec, const iceberg::Schema& internal,
                                TableView view);

/// Metadata of a view of a table; `previous` keeps its identity and its versions (null = new).
Result<iceberg::ViewMetadata> MakeTableView(const TableSpec& spec,
                                            const iceberg::TableMetadata& internal, TableView view,
                                            const iceberg::ViewMetadata* previous,
                                            const std::string& view_uuid, int64_t now_ms);

/// The shape of the views of a table with these columns.
ViewShape ShapeOf(const TableSpec& spec, const iceberg::Schema& internal);

}  // namespace tarn::lakehouse
