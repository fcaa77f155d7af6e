#include "tarn/query/table_relation.h"

#include <algorithm>

#include <fmt/format.h>

#include "tarn/engine/quoting.h"
#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/lakehouse/scan/snapshot_relation.h"
#include "tarn/lakehouse/table_commit.h"
#include "tarn/lakehouse/table_files.h"
#include "tarn/lakehouse/view_sql.h"

namespace tarn::query {

namespace {

using iceberg::Schema;
using iceberg::SchemaField;
using iceberg::Snapshot;
using iceberg::TableMetadata;
using lakehouse::HeaderColumn;
using lakehouse::TableFiles;
using lakehouse::TableView;

// The first snapshot of main that had taken in the landing transaction as the newest of its batch.
const Snapshot* FindInput(const TableMetadata& metadata, const std::string& transaction) {
  for (const iceberg::SnapshotLogEntry& entry : metadata.snapshot_log) {
    const Snapshot* snapshot = metadata.FindSnapshot(entry.snapshot_id);
    if (snapshot == nullptr) {
      continue;
    }
    for (const auto& [key, value] : snapshot->summary) {
      if (key.starts_with(lakehouse::kInputKeyPrefix) && value == transaction) {
        return snapshot;
      }
    }
  }
  return nullptr;
}

Status PointMissing(std::string message, std::string_view history_view) {
  if (!history_view.empty()) {
    message += fmt::format(
        "; older states are in the history view {}: ask for rows with "
        "hdr__from_timestamp <= T and (hdr__to_timestamp is null or > T)",
        history_view);
  }
  return Status::NotFound(std::move(message));
}

// Columns of an internal table that a part of the view reads, header columns first.
std::vector<SchemaField> ColumnsOf(const Schema& schema,
                                   std::initializer_list<HeaderColumn> headers) {
  std::vector<SchemaField> columns;
  for (const HeaderColumn header : headers) {
    if (const SchemaField* field = schema.FindField(lakehouse::Spec(header).field_id)) {
      columns.push_back(*field);
    }
  }
  for (const SchemaField& field : schema.fields) {
    if (field.id >= lakehouse::kFirstUserFieldId) {
      columns.push_back(field);
    }
  }
  return columns;
}

// A reader of the newest state sees the newest columns, one of an older state those of then.
const Schema& SchemaAt(const TableRelation& relation, const Snapshot* snapshot) {
  return snapshot == nullptr || std::holds_alternative<Newest>(relation.point)
             ? relation.metadata->CurrentSchema()
             : relation.metadata->SchemaOf(*snapshot);
}

// Makes the view of a target over the files of one snapshot.
class TargetView {
 public:
  TargetView(engine::Session& session, catalog::Catalog& catalog, const TableRelation& relation,
             const Snapshot* snapshot)
      : session_(session),
        catalog_(catalog),
        relation_(relation),
        snapshot_(snapshot),
        schema_(SchemaAt(relation, snapshot)) {}

  Status Make() {
    TARN_ASSIGN_OR_RETURN(TableFiles files, ListFiles());
    TARN_ASSIGN_OR_RETURN(const lakehouse::ViewSources sources, MakeSources(files));
    const lakehouse::Unapplied unapplied =
        files.changes.empty() ? lakehouse::Unapplied::kNone : lakehouse::Unapplied::kPossible;
    const lakehouse::ViewOrigin& origin = *relation_.origin;
    const lakehouse::ViewShape shape{.key_columns = origin.key,
                                     .user_columns = lakehouse::UserColumnNames(schema_),
                                     .view_headers = origin.view_headers,
                                     .null_keys = origin.null_keys,
                                     .fold = origin.fold};
    std::string text;
    if (origin.view == TableView::kCurrent) {
      TARN_ASSIGN_OR_RETURN(text, lakehouse::CurrentViewSql(lakehouse::SqlDialect::kDuckDb, shape,
                                                            sources, unapplied));
    } else {
      text = lakehouse::HistoryViewSql(lakehouse::SqlDialect::kDuckDb, shape, sources, unapplied);
    }
    return session_.Execute(fmt::format("CREATE OR REPLACE TEMP VIEW {} AS {}",
                                        engine::QuoteName(relation_.name), text));
  }

 private:
  // The files of the snapshot; `changes` are the unapplied ones.
  Result<TableFiles> ListFiles() {
    TableFiles files;
    if (snapshot_ == nullptr) {
      return files;
    }
    TARN_ASSIGN_OR_RETURN(
        files, lakehouse::ListTableFiles(catalog_.deps().warehouse, catalog_.manifest_cache(),
                                         *relation_.metadata, snapshot_->snapshot_id));
    const auto applied = snapshot_->summary.find(std::string(lakehouse::kApplyIdentifierKey));
    if (applied != snapshot_->summary.end()) {
      std::erase_if(files.changes, [&](const iceberg::FileScanTask& task) {
        return lakehouse::LowestIdentifier(task.file) <= applied->second;
      });
    }
    return files;
  }

  Result<lakehouse::ViewSources> MakeSources(const TableFiles& files) {
    lakehouse::ViewSources sources;
    TARN_ASSIGN_OR_RETURN(
        sources.current,
        MakeSource("current", files.current,
                   {HeaderColumn::kKeyHash, HeaderColumn::kOperation, HeaderColumn::kFromTimestamp,
                    HeaderColumn::kInsertedTimestamp, HeaderColumn::kModifiedTimestamp}));
    TARN_ASSIGN_OR_RETURN(
        sources.changes,
        MakeSource("changes", files.changes,
                   {HeaderColumn::kKeyHash, HeaderColumn::kOperation, HeaderColumn::kTimestamp,
                    HeaderColumn::kInsertedTimestamp, HeaderColumn::kChangeIdentifier}));
    const lakehouse::ViewOrigin& origin = *relation_.origin;
    if (origin.view == TableView::kHistory ||
        (origin.fold.history && !origin.view_headers.empty())) {
      TARN_ASSIGN_OR_RETURN(sources.prior,
                            MakeSource("prior", files.prior,
                                       {HeaderColumn::kKeyHash, HeaderColumn::kOperation,
                                        HeaderColumn::kFromTimestamp, HeaderColumn::kToTimestamp,
                                        HeaderColumn::kWasCurrentFromTimestamp,
                                        HeaderColumn::kWasCurrentToTimestamp}));
    }
    return sources;
  }

  // Makes the relation of one partition; returns its name as it can stand after FROM.
  Result<std::string> MakeSource(std::string_view partition,
                                 const std::vector<iceberg::FileScanTask>& files,
                                 std::initializer_list<HeaderColumn> headers) {
    const std::string name = fmt::format("{}_{}", relation_.name, partition);
    TARN_RETURN_IF_ERROR(lakehouse::MakeSnapshotRelation(session_, catalog_.deps().warehouse,
                                                         {.name = name,
                                                          .metadata = relation_.metadata.get(),
                                                          .columns = ColumnsOf(schema_, headers),
                                                          .files = files}));
    return engine::QuoteName(name);
  }

  engine::Session& session_;
  catalog::Catalog& catalog_;
  const TableRelation& relation_;
  const Snapshot* snapshot_;
  const Schema& schema_;
};

Status MakePlainTable(engine::Session& session, catalog::Catalog& catalog,
                      const TableRelation& relation, const Snapshot* snapshot) {
  const TableMetadata& metadata = *relation.metadata;
  const Schema& schema = SchemaAt(relation, snapshot);
  TARN_ASSIGN_OR_RETURN(
      const std::vector<iceberg::FileScanTask> tasks,
      PlanFiles(catalog, metadata, snapshot, schema, FilterOf(relation.conditions, schema)));
  return lakehouse::MakeSnapshotRelation(
      session, catalog.deps().warehouse,
      {.name = relation.name, .metadata = &metadata, .columns = schema.fields, .files = tasks});
}

}  // namespace

Result<std::vector<iceberg::FileScanTask>> PlanFiles(catalog::Catalog& catalog,
                                                     const TableMetadata& metadata,
                                                     const Snapshot* snapshot, const Schema& schema,
                                                     const iceberg::Expression& filter) {
  if (snapshot == nullptr) {
    return std::vector<iceberg::FileScanTask>();
  }
  // The filter is bound to the schema that the plan is made with: it must be the reader's.
  const bool current =
      snapshot == metadata.CurrentSnapshot() && &schema == &metadata.CurrentSchema();
  const bool of_snapshot = &schema == &metadata.SchemaOf(*snapshot);
  return iceberg::PlanScan(
      catalog.deps().warehouse, catalog.manifest_cache(), metadata,
      current ? std::optional<int64_t>() : std::optional<int64_t>(snapshot->snapshot_id),
      current || of_snapshot ? filter : iceberg::Expression::True(), {});
}

Result<const Snapshot*> PinSnapshot(const TableMetadata& metadata, const PointInTime& point,
                                    std::string_view history_view) {
  if (const auto* id = std::get_if<SnapshotId>(&point)) {
    const Snapshot* snapshot = metadata.FindSnapshot(id->value);
    if (snapshot == nullptr) {
      return PointMissing(
          fmt::format("snapshot {} is not kept any more, or was never there", id->value),
          history_view);
    }
    return snapshot;
  }
  if (const auto* time = std::get_if<Timestamp>(&point)) {
    const Result<int64_t> id = iceberg::SnapshotIdAsOf(metadata, ToMillis(*time));
    if (!id.ok()) {
      return PointMissing(id.status().message(), history_view);
    }
    return metadata.FindSnapshot(*id);
  }
  if (const auto* transaction = std::get_if<dataset::TransactionRid>(&point)) {
    const Snapshot* snapshot = FindInput(metadata, transaction->ToString());
    if (snapshot == nullptr) {
      return PointMissing(fmt::format("no kept snapshot ends with the landing transaction {}",
                                      transaction->ToString()),
                          history_view);
    }
    return snapshot;
  }
  return metadata.CurrentSnapshot();
}

Result<PointInTime> PointOnBranch(const TableMetadata& metadata, const PointInTime& point,
                                  const std::string& branch) {
  if (branch == iceberg::kMainBranch || branch == "master") {
    return point;
  }
  const auto ref = metadata.refs.find(branch);
  if (ref == metadata.refs.end()) {
    return Status::NotFound(
               fmt::format(
                   "there is no branch or tag {}: tables have main alone unless somebody made "
                   "another",
                   branch))
        .WithReason("BranchNotFound");
  }
  if (std::holds_alternative<SnapshotId>(point)) {
    return point;
  }
  if (!std::holds_alternative<Newest>(point)) {
    return Status::InvalidArgument(
        fmt::format("branch {} is read as it is now, found {}: give a snapshot id, or read main",
                    branch, FormatPointInTime(point)));
  }
  return PointInTime(SnapshotId{ref->second.snapshot_id});
}

Status MakeTableRelation(engine::Session& session, catalog::Catalog& catalog,
                         const TableRelation& relation) {
  const std::string history = relation.origin ? relation.origin->history_name : std::string();
  Result<const Snapshot*> snapshot = PinSnapshot(*relation.metadata, relation.point, history);
  if (!snapshot.ok()) {
    return snapshot.status().WithContext(relation.written);
  }
  const Status made = relation.origin ? TargetView(session, catalog, relation, *snapshot).Make()
                                      : MakePlainTable(session, catalog, relation, *snapshot);
  return made.ok() ? made : made.WithContext(relation.written);
}

}  // namespace tarn::query
