// FileLayout: where the columns of a table are inside data files, and how they are read from there.
//
// The engine finds top-level columns by field id and members of structs by name. That is enough as
// long as no member was renamed, or dropped and made again, and files carry ids. Otherwise the
// files' own schemas are looked at, and each layout among them is read in its own way.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/engine/scan_sql.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/table_metadata.h"
#include "tarn/storage/object_store.h"

namespace tarn::lakehouse {

/// One column in one layout.
struct LayoutColumn {
  engine::ScanColumn scan;  // As the file has it; its name is "k<index>".
  std::string expression;   // Over the scan column; its plain name where nothing has to change.
};

/// How a group of files is read. Value.
struct FileLayout {
  engine::ScanMatch match = engine::ScanMatch::kFieldId;
  std::vector<LayoutColumn> columns;  // As many as asked for, in their order.
  bool plain = false;                 // No expression changes anything.
};

struct FileLayouts {
  std::vector<FileLayout> layouts;
  std::vector<size_t> of_file;  // Index of the layout of each file.
};

/// Plans how `columns` are read from the files. Most tables need no file to be opened for it.
/// Errors: kUnimplemented for types that SQL cannot read; those of opening files when the table has
/// a name mapping or its nested columns changed; kInvalidArgument for a broken name mapping.
Result<FileLayouts> PlanLayouts(storage::ObjectStore& store, const iceberg::TableMetadata& metadata,
                                const std::vector<iceberg::SchemaField>& columns,
                                std::span<const iceberg::FileScanTask> files);

/// Values that the partition of a file gives to columns it may not hold itself: those of identity
/// fields that the file counts no values for.
/// `columns`: as in PlanLayouts; constants name scan columns.
Result<std::vector<engine::ScanConstant>> PartitionConstants(
    const iceberg::TableMetadata& metadata, const std::vector<iceberg::SchemaField>& columns,
    const iceberg::DataFile& file);

}  // namespace tarn::lakehouse
