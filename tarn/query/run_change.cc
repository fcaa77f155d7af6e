#include "tarn/query/run_change.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tarn/access/audit.h"
#include "tarn/base/arrow_status.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/engine/quoting.h"
#include "tarn/iceberg/update/table_operation.h"
#include "tarn/lakehouse/scan/snapshot_commit.h"
#include "tarn/lakehouse/scan/sql_type.h"
#include "tarn/lakehouse/scan/table_rows.h"
#include "tarn/lakehouse/table_writer.h"
#include "tarn/query/change_statement.h"
#include "tarn/query/create_table_as.h"
#include "tarn/query/deleted_rows.h"
#include "tarn/query/merge_sql.h"
#include "tarn/query/object_statement.h"
#include "tarn/query/resource_name.h"
#include "tarn/query/stoppable_sql.h"
#include "tarn/tree/permission.h"

namespace tarn::query {

namespace {

using iceberg::DataFile;
using iceberg::SchemaField;
using iceberg::TableMetadata;
using metastore::SqlTransaction;

constexpr int kTriesMax = 3;

// The first two columns of a batch: _file and _pos.
Status CollectRows(const arrow::RecordBatch& batch, DeletedRows& deleted) {
  if (batch.column(0)->type_id() != arrow::Type::STRING ||
      batch.column(1)->type_id() != arrow::Type::INT64) {
    return Status::Internal("places of rows have unexpected types");
  }
  const auto& files = static_cast<const arrow::StringArray&>(*batch.column(0));
  const auto& positions = static_cast<const arrow::Int64Array&>(*batch.column(1));
  for (int64_t i = 0; i < batch.num_rows(); ++i) {
    deleted.Add(files.GetView(i), positions.Value(i));
  }
  return Status::Ok();
}

// Rows that a MERGE changes.
struct MergedRows {
  DeletedRows deleted;  // Of the table: deleted and updated ones.
  bool twice = false;   // One of them was matched by several rows of the source.
  int64_t inserted = 0;
};

// The rows of a batch of MergeSql: takes in those that go and gives those to write, places and all.
Result<std::shared_ptr<arrow::RecordBatch>> SortMerged(
    const std::shared_ptr<arrow::RecordBatch>& batch, const std::vector<MergeClause>& clauses,
    MergedRows& rows) {
  if (batch->column(0)->type_id() != arrow::Type::STRING ||
      batch->column(1)->type_id() != arrow::Type::INT64 ||
      batch->column(2)->type_id() != arrow::Type::INT32) {
    return Status::Internal("places of rows have unexpected types");
  }
  const auto& files = static_cast<const arrow::StringArray&>(*batch->column(0));
  const auto& positions = static_cast<const arrow::Int64Array&>(*batch->column(1));
  const auto& numbers = static_cast<const arrow::Int32Array&>(*batch->column(2));
  arrow::BooleanBuilder written;
  TARN_RETURN_IF_ERROR(written.Reserve(batch->num_rows()));
  for (int64_t i = 0; i < batch->num_rows(); ++i) {
    const auto clause = static_cast<size_t>(numbers.Value(i)) - 1;
    TARN_CHECK(clause < clauses.size());
    const MergeClause::Action action = clauses[clause].action;
    if (action == MergeClause::Action::kInsert) {
      ++rows.inserted;
    } else {
      rows.twice |= !rows.deleted.Add(files.GetView(i), positions.Value(i));
    }
    written.UnsafeAppend(action != MergeClause::Action::kDelete);
  }
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Array> mask, written.Finish());
  TARN_ASSIGN_OR_RETURN(const arrow::Datum kept, arrow::compute::Filter(batch, mask));
  return kept.record_batch();
}

// What the audit log says of a statement.
struct ChangeEvent {
  std::string_view action;
  std::string resource;
  std::string_view operation{};  // Of a change of rows.
  access::AuditOutcome outcome = access::AuditOutcome::kDone;
};

access::AuditRecord RecordOf(const ChangeContext& context, const ChangeEvent& event) {
  return {.id = 0,
          .time = context.deps.catalog.deps().clock.Now(),
          .user_id = context.principal.user_id,
          .token_id = context.principal.token_id,
          .action = std::string(event.action),
          .resource = event.resource,
          .outcome = event.outcome,
          .details = event.operation.empty()
                         ? std::string()
                         : fmt::format(R"({{"statement":"{}"}})", event.operation)};
}

// One statement on one state of its table.
class Change {
 public:
  Change(const ChangeContext& context, std::string name, catalog::LoadedTable table)
      : context_(context),
        name_(std::move(name)),
        request_(context.request),
        deps_(context.deps),
        table_(std::move(table)),
        metadata_(*table_.metadata),
        layout_(metadata_.format_version >= 3 ? lakehouse::WithLineageColumns(metadata_)
                                              : metadata_) {}

  Result<ChangeResult> Run(const DeleteStatement& statement) {
    if (metadata_.CurrentSnapshot() == nullptr) {
      return ChangeResult{};
    }
    if (statement.condition == "true") {
      TARN_ASSIGN_OR_RETURN(const std::optional<ChangeResult> all, DeleteAll());
      if (all) {
        return *all;
      }
    }
    const std::string sql = fmt::format("SELECT {0}._file, {0}._pos FROM {1} WHERE ({2}\n)",
                                        AliasOf(statement), RowsOf(statement), statement.condition);
    DeletedRows deleted;
    TARN_RETURN_IF_ERROR(ReadRows(sql, [&](const std::shared_ptr<arrow::RecordBatch>& batch) {
      return CollectRows(*batch, deleted);
    }));
    return Commit("delete", deleted, {});
  }

  Result<ChangeResult> Run(const UpdateStatement& statement) {
    if (metadata_.CurrentSnapshot() == nullptr) {
      return ChangeResult{};
    }
    TARN_ASSIGN_OR_RETURN(const std::string sql, UpdateSql(statement));
    DeletedRows deleted;
    lakehouse::TableWriter writer(lakehouse::RowWriterOptions(layout_), WriterDeps());
    TARN_RETURN_IF_ERROR(
        ReadRows(sql, [&](const std::shared_ptr<arrow::RecordBatch>& batch) -> Status {
          TARN_RETURN_IF_ERROR(CollectRows(*batch, deleted));
          return WriteColumns(layout_, batch, 2, writer);
        }));
    TARN_ASSIGN_OR_RETURN(std::vector<DataFile> written, writer.Close());
    return Commit("update", deleted, std::move(written));
  }

  Result<ChangeResult> Run(const InsertStatement& statement) {
    TARN_ASSIGN_OR_RETURN(const std::string sql, InsertSql(statement));
    lakehouse::TableWriter writer(lakehouse::RowWriterOptions(metadata_), WriterDeps());
    TARN_RETURN_IF_ERROR(ReadRows(sql, [&](const std::shared_ptr<arrow::RecordBatch>& batch) {
      return WriteColumns(metadata_, batch, 0, writer);
    }));
    ChangeResult result{.changed_rows = writer.row_count()};
    iceberg::SnapshotUpdate update;
    TARN_ASSIGN_OR_RETURN(update.added_data_files, writer.Close());
    if (!update.added_data_files.empty()) {
      TARN_ASSIGN_OR_RETURN(result.snapshot_id, CommitOrRemove("insert", update));
    }
    return result;
  }

  Result<ChangeResult> Run(const MergeStatement& statement) {
    TARN_ASSIGN_OR_RETURN(const std::string sql,
                          MergeSql(statement, {.table = table_.object.name,
                                               .rows = RowsOf(statement),
                                               .alias = AliasOf(statement),
                                               .columns = metadata_.CurrentSchema().fields,
                                               .with_lineage = metadata_.format_version >= 3}));
    MergedRows merged;
    lakehouse::TableWriter writer(lakehouse::RowWriterOptions(layout_), WriterDeps());
    TARN_RETURN_IF_ERROR(
        ReadRows(sql, [&](const std::shared_ptr<arrow::RecordBatch>& batch) -> Status {
          TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> rows,
                                SortMerged(batch, statement.clauses, merged));
          return rows->num_rows() == 0 ? Status::Ok() : WriteColumns(layout_, rows, 3, writer);
        }));
    if (merged.twice) {
      return Status::InvalidArgument(fmt::format(
          "a row of {} is matched by several rows of the source: it must have one for each",
          table_.object.name));
    }
    TARN_ASSIGN_OR_RETURN(std::vector<DataFile> written, writer.Close());
    return Commit("merge", merged.deleted, std::move(written), merged.inserted);
  }

 private:
  template <typename Statement>
  static std::string AliasOf(const Statement& statement) {
    return statement.alias.empty() ? engine::QuoteName(statement.table.back()) : statement.alias;
  }

  // The table's rows with their places, as they were in the head.
  template <typename Statement>
  std::string RowsOf(const Statement& statement) const {
    std::vector<std::string> name = statement.table;
    name.back() += "$rows";
    const iceberg::Snapshot* head = metadata_.CurrentSnapshot();
    return fmt::format(
        "{} AS {}{}", engine::QuoteNames(name), AliasOf(statement),
        head == nullptr ? std::string() : fmt::format(" AT (VERSION => {})", head->snapshot_id));
  }

  [[nodiscard]] Result<size_t> IndexOf(const std::string& column) const {
    return ColumnIndex(metadata_.CurrentSchema().fields, table_.object.name, column);
  }

  Result<std::string> UpdateSql(const UpdateStatement& statement) const {
    const std::vector<SchemaField>& fields = metadata_.CurrentSchema().fields;
    std::vector<std::string> values;
    for (const SchemaField& field : fields) {
      values.push_back(fmt::format("{}.{}", AliasOf(statement), engine::QuoteName(field.name)));
    }
    std::vector<bool> assigned(fields.size(), false);
    for (const auto& [column, expression] : statement.assignments) {
      TARN_ASSIGN_OR_RETURN(const size_t index, IndexOf(column));
      if (assigned[index]) {
        return Status::InvalidArgument(fmt::format("column {} is set twice", column));
      }
      assigned[index] = true;
      TARN_ASSIGN_OR_RETURN(const std::string type, lakehouse::SqlTypeOf(fields[index].type));
      values[index] = fmt::format("CAST(({}\n) AS {})", expression, type);
    }
    if (metadata_.format_version >= 3) {
      // An updated row keeps its id; the commit says when it was updated.
      values.push_back(AliasOf(statement) + "._row_id");
      values.emplace_back("CAST(NULL AS BIGINT)");
    }
    return fmt::format("SELECT {0}._file, {0}._pos, {1} FROM {2} WHERE ({3}\n)", AliasOf(statement),
                       fmt::join(values, ", "), RowsOf(statement), statement.condition);
  }

  Result<std::string> InsertSql(const InsertStatement& statement) {
    const std::vector<SchemaField>& fields = metadata_.CurrentSchema().fields;
    std::vector<std::optional<size_t>> source(fields.size());
    size_t count = 0;
    if (statement.columns.empty()) {
      for (; count < fields.size(); ++count) {
        source[count] = count;
      }
    }
    for (const std::string& column : statement.columns) {
      TARN_ASSIGN_OR_RETURN(const size_t index, IndexOf(column));
      if (source[index]) {
        return Status::InvalidArgument(fmt::format("column {} is named twice", column));
      }
      source[index] = count++;
    }
    TARN_RETURN_IF_ERROR(CheckColumnCount(statement, count));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      names.push_back(fmt::format("c{}", i));
    }
    std::vector<std::string> values;
    for (size_t i = 0; i < fields.size(); ++i) {
      TARN_ASSIGN_OR_RETURN(const std::string type, lakehouse::SqlTypeOf(fields[i].type));
      TARN_ASSIGN_OR_RETURN(const std::string value, source[i]
                                                         ? Result<std::string>(names[*source[i]])
                                                         : MissingValueSql(fields[i]));
      values.push_back(fmt::format("CAST({} AS {})", value, type));
    }
    return fmt::format("SELECT {} FROM ({}\n) AS tarn_rows({})", fmt::join(values, ", "),
                       statement.select, fmt::join(names, ", "));
  }

  Status CheckColumnCount(const InsertStatement& statement, size_t count) {
    QueryRequest request = request_;
    request.sql = fmt::format("SELECT * FROM ({}\n) AS tarn_rows LIMIT 0", statement.select);
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<RunningQuery> query, context_.Start(request));
    const auto found = static_cast<size_t>(query->schema()->num_fields());
    return found == count
               ? Status::Ok()
               : Status::InvalidArgument(fmt::format("the statement gives {} columns, {} takes {}",
                                                     found, table_.object.name, count));
  }

  template <typename Visit>
  Status ReadRows(const std::string& sql, const Visit& visit) {
    QueryRequest request = request_;
    request.sql = sql;
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<RunningQuery> query, context_.Start(request));
    const std::stop_callback interrupt(context_.stop, [&query] { query->Interrupt(); });
    while (true) {
      TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, query->Next());
      if (batch == nullptr) {
        return Status::Ok();
      }
      TARN_RETURN_IF_ERROR(visit(batch));
    }
  }

  // Columns from `first` on, as rows of the table.
  static Status WriteColumns(const TableMetadata& layout,
                             const std::shared_ptr<arrow::RecordBatch>& batch, int first,
                             lakehouse::TableWriter& writer) {
    arrow::FieldVector fields;
    arrow::ArrayVector columns;
    for (int i = first; i < batch->num_columns(); ++i) {
      fields.push_back(batch->schema()->field(i));
      columns.push_back(batch->column(i));
    }
    TARN_ASSIGN_OR_RETURN(
        const std::shared_ptr<arrow::RecordBatch> rows,
        lakehouse::AsTableRows(layout.CurrentSchema().fields,
                               arrow::RecordBatch::Make(arrow::schema(std::move(fields)),
                                                        batch->num_rows(), std::move(columns))));
    return writer.Write(rows);
  }

  [[nodiscard]] lakehouse::TableWriterDeps WriterDeps() const {
    return {deps_.catalog.deps().warehouse, deps_.catalog.deps().uuids};
  }

  [[nodiscard]] iceberg::OperationContext Head() const {
    return {.store = deps_.catalog.deps().warehouse,
            .cache = deps_.catalog.manifest_cache(),
            .metadata = metadata_};
  }

  // DELETE without WHERE: the files go, and no row of them is read. Nothing when that cannot be.
  Result<std::optional<ChangeResult>> DeleteAll() {
    iceberg::RowDelta delta;
    TARN_ASSIGN_OR_RETURN(const std::optional<int64_t> rows, RemoveAllFiles(Head(), delta));
    if (!rows) {
      return std::optional<ChangeResult>();
    }
    ChangeResult result{.changed_rows = *rows};
    if (*rows > 0) {
      TARN_ASSIGN_OR_RETURN(delta.isolation, iceberg::IsolationOf(metadata_, "delete"));
      TARN_ASSIGN_OR_RETURN(const iceberg::SnapshotUpdate update,
                            iceberg::DeltaUpdate(Head(), delta));
      TARN_ASSIGN_OR_RETURN(result.snapshot_id, CommitOrRemove("delete", update));
    }
    return std::optional(result);
  }

  Result<ChangeResult> Commit(std::string_view operation, const DeletedRows& deleted,
                              std::vector<DataFile> added, int64_t inserted = 0) {
    ChangeResult result{.changed_rows = inserted + deleted.size()};
    if (result.changed_rows == 0) {
      return result;
    }
    iceberg::RowDelta delta{.added = std::move(added)};
    const Result<iceberg::SnapshotUpdate> update = MakeDelta(operation, deleted, delta);
    if (!update.ok()) {
      RemoveFiles(delta.added);
      RemoveFiles(delta.deletes.added);
      return update.status();
    }
    TARN_ASSIGN_OR_RETURN(result.snapshot_id, CommitOrRemove(operation, *update));
    return result;
  }

  Result<iceberg::SnapshotUpdate> MakeDelta(std::string_view operation, const DeletedRows& deleted,
                                            iceberg::RowDelta& delta) {
    TARN_ASSIGN_OR_RETURN(delta.isolation, iceberg::IsolationOf(metadata_, operation));
    TARN_RETURN_IF_ERROR(RemoveRows(Head(), deps_.catalog.deps().uuids, deleted, {}, delta));
    return iceberg::DeltaUpdate(Head(), delta);
  }

  Result<int64_t> CommitOrRemove(std::string_view operation,
                                 const iceberg::SnapshotUpdate& update) {
    const auto record = [&](SqlTransaction& sql) {
      return access::AppendAudit(
          sql, RecordOf(context_,
                        {.action = "table.commit", .resource = name_, .operation = operation}));
    };
    const Status stopped = context_.CheckNotStopped();
    const Result<lakehouse::SnapshotCommit> commit =
        stopped.ok() ? lakehouse::CommitSnapshot(deps_.catalog, table_.object.rid, update, record)
                     : Result<lakehouse::SnapshotCommit>(stopped);
    if (commit.ok()) {
      return commit->snapshot_id;
    }
    if (commit.status().code() != ErrorCode::kCommitStateUnknown) {
      RemoveFiles(update.added_data_files);
      RemoveFiles(update.added_delete_files);
    }
    return commit.status();
  }

  void RemoveFiles(const std::vector<DataFile>& files) {
    lakehouse::RemoveFiles(deps_.catalog.deps().warehouse, files);
  }

  const ChangeContext& context_;
  const std::string name_;  // As the statement writes it.
  const QueryRequest& request_;
  const QueryDeps& deps_;
  const catalog::LoadedTable table_;
  const TableMetadata& metadata_;
  const TableMetadata layout_;  // Of files with rows that were in others.
};

struct NameOf {
  template <typename Statement>
  const std::vector<std::string>& operator()(const Statement& statement) const {
    if constexpr (requires { statement.table; }) {
      return statement.table;
    } else {
      return statement.name;
    }
  }
};

struct ActionOf {
  template <typename Statement>
  std::string_view operator()(const Statement& /*statement*/) const {
    return "table.commit";
  }
  std::string_view operator()(const CreateTableStatement& statement) const {
    return statement.or_replace ? "table.replace" : "table.create";
  }
  std::string_view operator()(const CreateSchemaStatement& /*statement*/) const {
    return "namespace.create";
  }
  std::string_view operator()(const DropStatement& statement) const {
    switch (statement.kind) {
      case DropStatement::Kind::kTable:
        return "table.drop";
      case DropStatement::Kind::kView:
        return "view.drop";
      case DropStatement::Kind::kSchema:
        return "namespace.drop";
    }
    return "table.drop";
  }
};

struct RunOn {
  template <typename Statement>
  Result<ChangeResult> operator()(const Statement& statement) const {
    return change.Run(statement);
  }
  Result<ChangeResult> operator()(const CreateTableStatement& /*statement*/) const {
    return Status::Internal("a table that is to be made is no table to change");
  }
  Result<ChangeResult> operator()(const CreateSchemaStatement& /*statement*/) const {
    return Status::Internal("a folder that is to be made is no table to change");
  }
  Result<ChangeResult> operator()(const DropStatement& /*statement*/) const {
    return Status::Internal("what is to be dropped is no table to change");
  }
  Change& change;
};

Result<Rid> FindChangedTable(const std::vector<std::string>& name, const QueryRequest& request,
                             const access::Principal& principal, const QueryDeps& deps) {
  Rid found;
  TARN_RETURN_IF_ERROR(deps.catalog.deps().database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const tree::Node project, FindProject(sql, request.project));
    TARN_ASSIGN_OR_RETURN(
        const tree::Node node,
        FindResource(
            sql, {.principal = principal, .authorizer = deps.authorizer, .project = project.rid},
            name));
    if (node.type != tree::NodeType::kTable) {
      return Status::InvalidArgument(fmt::format("{} is a {}: only tables can be changed",
                                                 fmt::join(name, "."),
                                                 tree::NodeTypeName(node.type)));
    }
    TARN_RETURN_IF_ERROR(
        tree::Require(sql, deps.authorizer, principal, node.rid,
                      {.role = access::Role::kEditor, .scope = access::Scope::kIcebergWrite}));
    found = node.rid;
    return Status::Ok();
  }));
  return found;
}

Status CheckChangeable(const catalog::LoadedTable& table) {
  if (table.object.writers != catalog::Writers::kAnyone) {
    return Status::PermissionDenied(
        fmt::format("table {} is written by its pipeline only", table.object.name));
  }
  if (table.metadata->format_version < 2) {
    return Status::Unimplemented(
        fmt::format("table {} is of format version 1, which is read only here: upgrade it to "
                    "version 2 first",
                    table.object.name));
  }
  return Status::Ok();
}

Result<ChangeResult> RunStatement(const ChangeStatement& statement, const ChangeContext& context) {
  const auto& [request, principal, deps, stop] = context;
  if (const auto* create = std::get_if<CreateTableStatement>(&statement)) {
    return CreateTableAs(*create, context);
  }
  if (const auto* schema = std::get_if<CreateSchemaStatement>(&statement)) {
    TARN_RETURN_IF_ERROR(CreateSchema(*schema, request, principal, deps));
    return ChangeResult{};
  }
  if (const auto* drop = std::get_if<DropStatement>(&statement)) {
    TARN_RETURN_IF_ERROR(DropObject(*drop, request, principal, deps));
    return ChangeResult{};
  }
  const std::vector<std::string>& name = std::visit(NameOf{}, statement);
  TARN_ASSIGN_OR_RETURN(const Rid rid, FindChangedTable(name, request, principal, deps));
  for (int tried = 1;; ++tried) {
    TARN_ASSIGN_OR_RETURN(catalog::LoadedTable table, deps.catalog.LoadTable(rid));
    TARN_RETURN_IF_ERROR(CheckChangeable(table));
    Change change(context, fmt::format("{}", fmt::join(name, ".")), std::move(table));
    Result<ChangeResult> result = std::visit(RunOn{change}, statement);
    if (result.ok() || result.status().code() != ErrorCode::kConflict || tried == kTriesMax) {
      return result;
    }
  }
}

}  // namespace

Result<ChangeResult> RunChange(const QueryRequest& request, const access::Principal& principal,
                               const QueryDeps& deps) {
  return RunStoppableChange(request, principal, deps, {});
}

Result<ChangeResult> RunStoppableChange(const QueryRequest& request,
                                        const access::Principal& principal, const QueryDeps& deps,
                                        const std::stop_token& stop) {
  const ChangeContext context{request, principal, deps, stop};
  if (!request.at.empty() || request.branch != QueryRequest().branch) {
    return Status::InvalidArgument("a table is changed as it is now, on main");
  }
  TARN_ASSIGN_OR_RETURN(const ChangeStatement statement, ParseChange(request.sql));
  Result<ChangeResult> result = RunStatement(statement, context);
  if (result.status().code() == ErrorCode::kPermissionDenied) {
    TARN_RETURN_IF_ERROR(access::AppendAudit(
        deps.catalog.deps().database,
        RecordOf(context,
                 {.action = std::visit(ActionOf{}, statement),
                  .resource = fmt::format("{}", fmt::join(std::visit(NameOf{}, statement), ".")),
                  .outcome = access::AuditOutcome::kDenied})));
  }
  return result;
}

}  // namespace tarn::query
