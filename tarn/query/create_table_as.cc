#include "tarn/query/create_table_as.h"

#include <algorithm>
#include <set>

#include <arrow/api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tarn/access/audit.h"
#include "tarn/catalog/location.h"
#include "tarn/catalog/pointer_store.h"
#include "tarn/engine/quoting.h"
#include "tarn/iceberg/metadata_builder.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/iceberg/snapshot_update.h"
#include "tarn/iceberg/update/table_replacement.h"
#include "tarn/lakehouse/scan/table_rows.h"
#include "tarn/lakehouse/table_writer.h"
#include "tarn/query/resource_name.h"
#include "tarn/query/stoppable_sql.h"
#include "tarn/tree/permission.h"

namespace tarn::query {

namespace {

using iceberg::DataFile;
using iceberg::TableMetadata;
using metastore::SqlTransaction;

constexpr int kTriesMax = 3;  // Of OR REPLACE while others change the table.

// A table that is being made.
class TableFromSelect {
 public:
  TableFromSelect(const CreateTableStatement& statement, const ChangeContext& context)
      : statement_(statement),
        context_(context),
        request_(context.request),
        principal_(context.principal),
        deps_(context.deps) {}

  Result<ChangeResult> Make() {
    bool exists = false;
    TARN_RETURN_IF_ERROR(catalog().database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(exists, FindPlace(sql));
      return Status::Ok();
    }));
    if (exists) {
      return ChangeResult{};
    }
    if (!replaced_.empty()) {
      TARN_ASSIGN_OR_RETURN(base_, deps_.catalog.LoadTable(replaced_));
      TARN_RETURN_IF_ERROR(CheckReplaceable());
    }
    QueryRequest select = request_;
    select.sql = statement_.select;
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<RunningQuery> query, context_.Start(select));
    const std::stop_callback interrupt(context_.stop, [&query] { query->Interrupt(); });
    TARN_ASSIGN_OR_RETURN(TableMetadata metadata, Define(*query->schema()));
    ChangeResult result;
    TARN_ASSIGN_OR_RETURN(std::vector<DataFile> files, WriteRows(*query, metadata, result));
    Status made = context_.CheckNotStopped();
    if (made.ok()) {
      made = Commit(std::move(metadata), files, result);
    }
    if (!made.ok() && made.code() != ErrorCode::kCommitStateUnknown) {
      lakehouse::RemoveFiles(catalog().warehouse, files);
    }
    TARN_RETURN_IF_ERROR(made);
    return result;
  }

 private:
  [[nodiscard]] const catalog::CatalogDeps& catalog() const { return deps_.catalog.deps(); }
  [[nodiscard]] std::string Name() const {
    return fmt::format("{}", fmt::join(statement_.table, "."));
  }

  // Finds the folder, which the principal may write to. True when the table is there and may be.
  Result<bool> FindPlace(SqlTransaction& sql) {
    TARN_ASSIGN_OR_RETURN(const tree::Node project, FindProject(sql, request_.project));
    TARN_ASSIGN_OR_RETURN(
        const TablePlace name,
        FindTablePlace(
            sql, {.principal = principal_, .authorizer = deps_.authorizer, .project = project.rid},
            statement_.table));
    const Status allowed =
        tree::Require(sql, deps_.authorizer, principal_, name.folder,
                      {.role = access::Role::kEditor, .scope = access::Scope::kIcebergWrite});
    if (allowed.code() == ErrorCode::kNotFound) {
      return NoSuchFolder(name.folder_name);
    }
    TARN_RETURN_IF_ERROR(allowed);
    place_ = {.folder = name.folder, .name = name.name, .by = principal_.user_id};
    TARN_ASSIGN_OR_RETURN(const std::optional<tree::Node> clash,
                          catalog::FindClash(sql, place_.folder, place_.name));
    const bool table = clash && clash->type == tree::NodeType::kTable;
    if (table && statement_.if_not_exists) {
      return true;
    }
    replaced_ = table && statement_.or_replace && clash->name == place_.name ? clash->rid : Rid();
    if (!replaced_.empty()) {
      TARN_RETURN_IF_ERROR(
          tree::Require(sql, deps_.authorizer, principal_, replaced_,
                        {.role = access::Role::kEditor, .scope = access::Scope::kIcebergWrite}));
      return false;
    }
    return clash ? Status::AlreadyExists(
                       fmt::format("cannot create table {}: the folder has the {} {}", Name(),
                                   tree::NodeTypeName(clash->type), clash->name))
                 : Result<bool>(false);
  }

  [[nodiscard]] Status CheckReplaceable() const {
    if (base_->object.writers != catalog::Writers::kAnyone) {
      return Status::PermissionDenied(
          fmt::format("table {} is written by its pipeline only", Name()));
    }
    if (base_->metadata->format_version < 2) {
      return Status::Unimplemented(
          fmt::format("table {} is of format version 1, which is read only here: upgrade it to "
                      "version 2 first",
                      Name()));
    }
    return Status::Ok();
  }

  // The table without its rows, and how to come to it from the one that it replaces.
  Result<TableMetadata> Define(const arrow::Schema& columns) {
    std::set<std::string> names;
    for (const std::shared_ptr<arrow::Field>& column : columns.fields()) {
      if (!names.insert(engine::LowerCase(column->name())).second) {
        return Status::InvalidArgument(fmt::format(
            "the SELECT gives two columns {}: give one another name with AS", column->name()));
      }
    }
    iceberg::TableDefinition definition;
    definition.table_uuid = catalog().uuids.NextV7().ToString();
    definition.location = storage::UriOf(catalog().warehouse, "tables/" + definition.table_uuid);
    TARN_ASSIGN_OR_RETURN(definition.schema, iceberg::FromArrowSchema(columns));
    TARN_ASSIGN_OR_RETURN(definition.spec, Partitioning(definition.schema));
    definition.properties = statement_.properties;
    const int64_t now_ms = ToMillis(catalog().clock.Now());
    TableMetadata metadata;
    if (base_) {
      definition.location.clear();
      TARN_ASSIGN_OR_RETURN(replacement_, iceberg::PlanReplacement(*base_->metadata, definition));
      TARN_ASSIGN_OR_RETURN(iceberg::UpdateResult result,
                            iceberg::ApplyUpdates(base_->metadata.get(), replacement_, now_ms));
      metadata = std::move(result.metadata);
    } else {
      TARN_ASSIGN_OR_RETURN(metadata, iceberg::MakeTableMetadata(definition, now_ms));
    }
    const TableMetadata* before = base_ ? base_->metadata.get() : nullptr;
    for (const std::string& path : catalog::NewWritePaths(before, metadata)) {
      TARN_RETURN_IF_ERROR(catalog().database.Read([&](SqlTransaction& sql) {
        return catalog::RequireOwnFile(
            sql, catalog().warehouse,
            {.location = metadata.location, .owner = replaced_, .folder = place_.folder}, path);
      }));
    }
    return metadata;
  }

  Result<iceberg::PartitionSpec> Partitioning(const iceberg::Schema& schema) const {
    iceberg::PartitionSpec spec;
    for (const CreateTableStatement::PartitionTerm& term : statement_.partitioning) {
      const auto column =
          std::find_if(schema.fields.begin(), schema.fields.end(), [&](const auto& field) {
            return engine::LowerCase(field.name) == engine::LowerCase(term.column);
          });
      if (column == schema.fields.end()) {
        return Status::InvalidArgument(
            fmt::format("PARTITIONED BY: the SELECT gives no column {}", term.column));
      }
      TARN_ASSIGN_OR_RETURN(const iceberg::Transform transform,
                            iceberg::ParseTransform(term.transform));
      if (transform.kind == iceberg::TransformKind::kUnknown) {
        return Status::InvalidArgument(
            fmt::format("PARTITIONED BY: {}({}) is not known: use the column itself, year, month, "
                        "day, hour, bucket(n, column) or truncate(n, column)",
                        term.transform, term.column));
      }
      const std::string suffix = term.transform.substr(0, term.transform.find('['));
      spec.fields.push_back({.source_id = column->id,
                             .field_id = 1000 + static_cast<int32_t>(spec.fields.size()),
                             .name = suffix == "identity"
                                         ? column->name
                                         : fmt::format("{}_{}", column->name,
                                                       suffix == "truncate" ? "trunc" : suffix),
                             .transform = transform});
    }
    return spec;
  }

  Result<std::vector<DataFile>> WriteRows(RunningQuery& query, const TableMetadata& metadata,
                                          ChangeResult& result) const {
    lakehouse::TableWriter writer(lakehouse::RowWriterOptions(metadata),
                                  {catalog().warehouse, catalog().uuids});
    while (true) {
      TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, query.Next());
      if (batch == nullptr) {
        break;
      }
      TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> rows,
                            lakehouse::AsTableRows(metadata.CurrentSchema().fields, batch));
      TARN_RETURN_IF_ERROR(writer.Write(rows));
    }
    result.changed_rows = writer.row_count();
    return writer.Close();
  }

  // Makes the table, with the files in its first snapshot.
  Status Commit(TableMetadata metadata, const std::vector<DataFile>& files, ChangeResult& result) {
    if (files.empty()) {
      return base_ ? Replace({}) : Create(metadata);
    }
    iceberg::SnapshotProducer producer({.added_data_files = files},
                                       {catalog().warehouse, deps_.catalog.manifest_cache()});
    const Status made = [&]() -> Status {
      const int64_t now_ms = ToMillis(catalog().clock.Now());
      TARN_ASSIGN_OR_RETURN(const iceberg::PreparedSnapshot prepared,
                            producer.Prepare(metadata, now_ms));
      if (base_) {
        TARN_RETURN_IF_ERROR(Replace(prepared.updates));
      } else {
        TARN_ASSIGN_OR_RETURN(const iceberg::UpdateResult next,
                              iceberg::ApplyUpdates(&metadata, prepared.updates, now_ms));
        TARN_RETURN_IF_ERROR(Create(next.metadata));
      }
      result.snapshot_id = prepared.snapshot.snapshot_id;
      return Status::Ok();
    }();
    if (!made.ok() && made.code() != ErrorCode::kCommitStateUnknown) {
      producer.CleanUp(nullptr);
    }
    return made;
  }

  // Moves the table that is there to what replaces it and the snapshot with its rows.
  Status Replace(const std::vector<iceberg::TableUpdate>& rows) {
    const TableMetadata& base = *base_->metadata;
    catalog::TableChange change{.table = base_->object};
    const iceberg::Snapshot* head = base.CurrentSnapshot();
    change.requirements = {
        iceberg::table_requirement::AssertTableUuid{base.table_uuid},
        iceberg::table_requirement::AssertRefSnapshotId{
            "main", head == nullptr ? std::nullopt : std::optional(head->snapshot_id)},
        iceberg::table_requirement::AssertLastAssignedFieldId{base.last_column_id},
        iceberg::table_requirement::AssertLastAssignedPartitionId{base.last_partition_id}};
    change.updates = replacement_;
    change.updates.insert(change.updates.end(), rows.begin(), rows.end());
    const Rid replaced = replaced_;
    const Status moved =
        StatusOf(deps_.catalog.CommitTables({change}, [&](SqlTransaction& sql) -> Status {
          TARN_RETURN_IF_ERROR(FindPlace(sql));
          return replaced_ == replaced ? Audit(sql, "table.replace") : Meanwhile();
        }));
    return moved.code() == ErrorCode::kNotFound ? Meanwhile() : moved;
  }

  [[nodiscard]] Status Meanwhile() const {
    return Status::Conflict(fmt::format("table {} was made, moved or dropped meanwhile", Name()));
  }

  Status Create(const TableMetadata& metadata) {
    const catalog::ObjectPlace place = place_;
    return StatusOf(deps_.catalog.CreateTable(place, metadata, [&](SqlTransaction& sql) -> Status {
      // What was found before the rows were written may have changed.
      TARN_ASSIGN_OR_RETURN(const bool exists, FindPlace(sql));
      if (!replaced_.empty()) {
        return Meanwhile();
      }
      if (exists || place_.folder != place.folder) {
        return Status::AlreadyExists(
            fmt::format("table {} was created, or its folder moved, meanwhile", Name()));
      }
      return Audit(sql, "table.create");
    }));
  }

  Status Audit(SqlTransaction& sql, std::string action) const {
    return access::AppendAudit(sql, {.id = 0,
                                     .time = catalog().clock.Now(),
                                     .user_id = principal_.user_id,
                                     .token_id = principal_.token_id,
                                     .action = std::move(action),
                                     .resource = Name(),
                                     .outcome = access::AuditOutcome::kDone,
                                     .details = {}});
  }

  const CreateTableStatement& statement_;
  const ChangeContext& context_;
  const QueryRequest& request_;
  const access::Principal& principal_;
  const QueryDeps& deps_;
  catalog::ObjectPlace place_;
  Rid replaced_;                              // The table that is there; empty = none.
  std::optional<catalog::LoadedTable> base_;  // As it was when the statement began.
  std::vector<iceberg::TableUpdate> replacement_;
};

}  // namespace

Result<std::unique_ptr<RunningQuery>> ChangeContext::Start(const QueryRequest& statement) const {
  return RunStoppableSql(statement, principal, deps, stop);
}

Status ChangeContext::CheckNotStopped() const {
  return stop.stop_requested()
             ? Status(ErrorCode::kCancelled, "the client left before the commit: nothing changed")
             : Status::Ok();
}

Result<ChangeResult> CreateTableAs(const CreateTableStatement& statement,
                                   const ChangeContext& context) {
  for (int tried = 1;; ++tried) {
    Result<ChangeResult> made = TableFromSelect(statement, context).Make();
    if (made.status().code() != ErrorCode::kConflict || !statement.or_replace ||
        tried == kTriesMax) {
      return made;
    }
  }
}

}  // namespace tarn::query
