// What the tests of this room share: plain tables, their rows, and deletes in them.
#pragma once

#include <string>
#include <vector>

#include "tarn/base/arrow_status.h"
#include "tarn/iceberg/deletes/row_deletes.h"
#include "tarn/iceberg/update/table_operation.h"
#include "tarn/lakehouse/scan/plain_table_fixture.h"
#include "tarn/lakehouse/scan/snapshot_relation.h"

namespace tarn::maintenance {

class MaintenanceFixture : public ::testing::Test {
 protected:
  std::vector<iceberg::FileScanTask> Plan(const Rid& table) {
    const iceberg::TableMetadata metadata = home_.Metadata(table);
    return iceberg::PlanScan(home_.store(), home_.catalog().manifest_cache(), metadata, {},
                             iceberg::Expression::True(), {})
        .value();
  }

  /// Deletes rows by position of the n-th file of the table.
  Status DeleteRows(const Rid& table, size_t file, iceberg::Positions positions) {
    const iceberg::TableMetadata metadata = home_.Metadata(table);
    const std::vector<iceberg::FileScanTask> tasks = Plan(table);
    TARN_ASSIGN_OR_RETURN(
        iceberg::WrittenRowDeletes written,
        iceberg::WriteRowDeletes(home_.store(), metadata, home_.uuids(),
                                 {{.task = tasks.at(file), .positions = std::move(positions)}}));
    TARN_ASSIGN_OR_RETURN(const iceberg::SnapshotUpdate update,
                          iceberg::DeltaUpdate({.store = home_.store(),
                                                .cache = home_.catalog().manifest_cache(),
                                                .metadata = metadata},
                                               {.deletes = std::move(written)}));
    home_.clock().Advance(std::chrono::seconds(1));
    return StatusOf(lakehouse::CommitSnapshot(home_.catalog(), table, update));
  }

  /// Values of a SELECT over the table's rows (relation t), as sorted text.
  std::vector<std::string> Rows(const Rid& table, const std::string& expression,
                                bool lineage = false) {
    const iceberg::TableMetadata metadata = home_.Metadata(table);
    const std::vector<iceberg::FileScanTask> tasks = Plan(table);
    const auto session = home_.engine().OpenSession().value();
    EXPECT_OK(lakehouse::MakeSnapshotRelation(*session, home_.store(),
                                              {.name = "t",
                                               .metadata = &metadata,
                                               .columns = metadata.CurrentSchema().fields,
                                               .files = tasks,
                                               .with_lineage = lineage}));
    const auto stream = session->Query("SELECT " + expression + " FROM t").value();
    const auto read = engine::ReadAll(*stream).value();
    std::vector<std::string> rows;
    for (int64_t i = 0; i < read->num_rows(); ++i) {
      rows.push_back(read->column(0)->GetScalar(i).ValueOrDie()->ToString());
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  lakehouse::PlainTables home_;
};

}  // namespace tarn::maintenance
