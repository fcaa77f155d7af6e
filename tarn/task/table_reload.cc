#include "tarn/task/table_reload.h"

#include <chrono>
#include <stop_token>
#include <thread>
#include <tuple>

#include <arrow/api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tarn/engine/quoting.h"
#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/lakehouse/scan/snapshot_relation.h"
#include "tarn/lakehouse/scan/table_rows.h"
#include "tarn/lakehouse/table_files.h"
#include "tarn/task/target_removal.h"

namespace tarn::task {

namespace {

using engine::QuoteName;
using lakehouse::Operation;
using lakehouse::TargetTable;

constexpr std::string_view kTypes[] = {"compare_and_apply", "compare_and_apply_without_deletes",
                                       "drop_and_create"};
constexpr std::string_view kThere = "tarn_there";
constexpr std::string_view kOperationColumn = "tarn_operation";

// The task that maps everything into a table beside the internal one, which nobody publishes.
pipeline::TransformSpec SpecOfCopy(const pipeline::TransformSpec& spec) {
  pipeline::TransformSpec copy = spec;
  copy.table.name += "__reload";
  copy.table.external_schema = copy.table.internal_schema;
  copy.table.fold = {};
  copy.table.publish = lakehouse::Publish::kNone;
  copy.table.view_headers.clear();
  copy.table.keep_changes.reset();
  return copy;
}

Status DropCopy(const pipeline::TransformSpec& copy, const ReloadRequest& request,
                const TransformDeps& deps) {
  TARN_RETURN_IF_ERROR(deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    if (deps.fence) {
      TARN_RETURN_IF_ERROR(deps.fence(sql));
    }
    return RemoveTarget(sql, deps.catalog, request.place.project, copy.table, request.place.by);
  }));
  if (request.stop.stop_requested()) {
    return Status::Ok();  // Its files go with the next purge, at the latest when a server starts.
  }
  const Result<int64_t> purged = deps.catalog.FinishPurges();
  (void)purged;  // What failed is logged and stays due.
  return Status::Ok();
}

Status CheckStop(const std::stop_token& stop) {
  return stop.stop_requested() ? Status(ErrorCode::kCancelled, "the reload was stopped")
                               : Status::Ok();
}

Status Drain(TransformTask& task, const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [&task] { task.Cancel(); });
  for (bool caught_up = false; !caught_up;) {
    TARN_RETURN_IF_ERROR(CheckStop(stop));
    TARN_ASSIGN_OR_RETURN(const TransformProgress progress, task.Step());
    caught_up = progress.caught_up;
  }
  return StatusOf(task.ApplyNow());
}

// The live rows of Current as the view `name` of a session, with kThere, only those that were
// modified until then. All are applied.
Status MakeCurrent(engine::Session& session, catalog::Catalog& catalog, TargetTable& table,
                   const std::string& name, const std::vector<std::string>& columns,
                   std::optional<Timestamp> modified_until = std::nullopt) {
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, table.Load());
  TARN_ASSIGN_OR_RETURN(
      const lakehouse::TableFiles files,
      lakehouse::ListTableFiles(catalog.deps().warehouse, catalog.manifest_cache(),
                                *loaded.metadata, std::nullopt));
  const std::string operation(Name(lakehouse::HeaderColumn::kOperation));
  lakehouse::SnapshotRelation relation{.name = name + "_rows",
                                       .metadata = loaded.metadata.get(),
                                       .columns = {},
                                       .files = files.current};
  std::vector<std::string> shown;
  const std::vector<iceberg::SchemaField>& fields = loaded.metadata->CurrentSchema().fields;
  const auto add = [&](const std::string& column) {
    const iceberg::SchemaField* field = lakehouse::FindColumn(fields, column);
    if (field != nullptr) {
      relation.columns.push_back(*field);
    }
    return field;
  };
  add(operation);
  const std::string modified(Name(lakehouse::HeaderColumn::kModifiedTimestamp));
  add(modified);
  for (const std::string& column : columns) {
    const iceberg::SchemaField* field = add(column);
    shown.push_back(field == nullptr ? "NULL AS " + QuoteName(column)
                                     : QuoteName(field->name) + " AS " + QuoteName(column));
  }
  TARN_RETURN_IF_ERROR(
      lakehouse::MakeSnapshotRelation(session, catalog.deps().warehouse, relation));
  return session.Execute(fmt::format(
      "CREATE OR REPLACE TEMP VIEW {} AS SELECT {}, TRUE AS {} FROM {} WHERE {} NOT IN "
      "('D', 'd'){}",
      QuoteName(name), fmt::join(shown, ", "), kThere, QuoteName(relation.name),
      QuoteName(operation),
      modified_until
          ? fmt::format(" AND epoch_us({}) <= {}", QuoteName(modified), ToMicros(*modified_until))
          : ""));
}

// The rows that differ between tarn_before and tarn_after, with what is to happen to them.
std::string DifferenceSql(const std::vector<std::string>& columns,
                          const std::vector<std::string>& key, ReloadType type) {
  std::vector<std::string> values;
  std::vector<std::string> same_key;
  std::vector<std::string> differs;
  for (const std::string& column : columns) {
    const std::string name = QuoteName(column);
    values.push_back(
        type == ReloadType::kDropAndCreate
            ? "a." + name
            : fmt::format("CASE WHEN a.{0} THEN a.{1} ELSE b.{1} END AS {1}", kThere, name));
    differs.push_back(fmt::format("a.{0} IS DISTINCT FROM b.{0}", name));
  }
  if (type == ReloadType::kDropAndCreate) {
    return fmt::format("SELECT 'L' AS {}, {} FROM tarn_after AS a", kOperationColumn,
                       fmt::join(values, ", "));
  }
  for (const std::string& column : key) {
    same_key.push_back(fmt::format("a.{0} IS NOT DISTINCT FROM b.{0}", QuoteName(column)));
  }
  const bool deletes = type == ReloadType::kCompareAndApply;
  return fmt::format(
      "SELECT CASE WHEN b.{0} IS NULL THEN 'I' WHEN a.{0} IS NULL THEN 'D' ELSE 'U' END AS {1}, "
      "{2} FROM tarn_before AS b {3} JOIN tarn_after AS a ON {4} "
      "WHERE a.{0} IS NULL OR b.{0} IS NULL OR {5}",
      kThere, kOperationColumn, fmt::join(values, ", "), deletes ? "FULL OUTER" : "RIGHT",
      fmt::join(same_key, " AND "), fmt::join(differs, " OR "));
}

void Count(Operation operation, ReloadCounts& counts) {
  switch (operation) {
    case Operation::kInsert:
      ++counts.inserted;
      return;
    case Operation::kUpdate:
      ++counts.updated;
      return;
    case Operation::kDelete:
      ++counts.deleted;
      return;
    case Operation::kLoad:
      ++counts.loaded;
      return;
  }
}

// Rows of DifferenceSql as changes of the table.
Result<lakehouse::ChangeBatch> ChangesOf(const arrow::RecordBatch& rows,
                                         const iceberg::Schema& users, Timestamp start,
                                         ReloadCounts& counts) {
  lakehouse::ChangeBatch batch;
  const auto& operations = static_cast<const arrow::StringArray&>(*rows.column(0));
  const auto size = static_cast<size_t>(rows.num_rows());
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    batch.operations.push_back(static_cast<Operation>(operations.GetView(row).front()));
    Count(batch.operations.back(), counts);
  }
  batch.timestamps_micros.assign(size, ToMicros(start));
  batch.landed_micros.assign(size, ToMicros(start));
  batch.source_micros.assign(size, ToMicros(start));
  arrow::FieldVector fields(rows.schema()->fields().begin() + 1, rows.schema()->fields().end());
  arrow::ArrayVector columns(rows.columns().begin() + 1, rows.columns().end());
  TARN_ASSIGN_OR_RETURN(
      batch.rows, lakehouse::AsTableRows(
                      users.fields, arrow::RecordBatch::Make(arrow::schema(std::move(fields)),
                                                             rows.num_rows(), std::move(columns))));
  return batch;
}

class Reload {
 public:
  // Rows of the copy count only when they were modified until `winners_until`.
  Reload(const ReloadRequest& request, const TransformDeps& deps, Timestamp start,
         std::optional<Timestamp> winners_until)
      : request_(request), deps_(deps), start_(start), winners_until_(winners_until) {}

  Result<ReloadCounts> Run(TargetTable& table, TargetTable& copy) {
    if (copy.exists()) {
      TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, copy.Load());
      TARN_RETURN_IF_ERROR(table.EnsureColumns(
          lakehouse::UserSchema(loaded.metadata->CurrentSchema()), deps_.fence));
    }
    TARN_ASSIGN_OR_RETURN(const TargetTable::ChangesSession changes, table.OpenChanges(start_));
    TARN_RETURN_IF_ERROR(WriteDifferences(table, copy, changes));
    lakehouse::ReloadCommit commit{.also = deps_.fence, .now = start_};
    TARN_ASSIGN_OR_RETURN(commit.written, changes.writer->Close());
    const bool replaces = request_.type == ReloadType::kDropAndCreate;
    if (replaces) {
      commit.scope = lakehouse::ReloadCommit::Scope::kEverything;
    }
    TARN_RETURN_IF_ERROR(CheckStop(request_.stop));
    if (commit.written.row_count > 0 || replaces) {
      TARN_RETURN_IF_ERROR(StatusOf(table.ApplyReload(commit)));
    }
    return counts_;
  }

 private:
  Status WriteDifferences(TargetTable& table, TargetTable& copy,
                          const TargetTable::ChangesSession& changes) {
    const iceberg::Schema users = lakehouse::UserSchema(changes.table.metadata->CurrentSchema());
    const std::vector<std::string> columns =
        lakehouse::UserColumnNames(changes.table.metadata->CurrentSchema());
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Session> session,
                          deps_.engine.OpenSession());
    const std::stop_callback on_stop(request_.stop, [&session] { session->Interrupt(); });
    TARN_RETURN_IF_ERROR(MakeCurrent(*session, deps_.catalog, table, "tarn_before", columns));
    TARN_RETURN_IF_ERROR(
        MakeCurrent(*session, deps_.catalog, copy, "tarn_after", columns, winners_until_));
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<engine::ArrowStream> rows,
                          session->Query(DifferenceSql(columns, table.spec().key, request_.type)));
    while (true) {
      TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, rows->Next());
      if (batch == nullptr) {
        return Status::Ok();
      }
      TARN_ASSIGN_OR_RETURN(const lakehouse::ChangeBatch change,
                            ChangesOf(*batch, users, start_, counts_));
      TARN_RETURN_IF_ERROR(changes.writer->Write(change));
    }
  }

  const ReloadRequest& request_;
  const TransformDeps& deps_;
  const Timestamp start_;
  const std::optional<Timestamp> winners_until_;
  ReloadCounts counts_;
};

// The input that the range is of, with its ends.
Result<std::vector<TransformInput>> InputsOfRange(const ReloadRequest& request,
                                                  const TransformDeps& deps) {
  if (request.range.whole()) {
    return request.inputs;
  }
  std::optional<dataset::TransactionRid> from;
  std::optional<dataset::TransactionRid> to;
  for (const auto& [name, text, end] :
       {std::tuple("from", &request.range.from, &from), std::tuple("to", &request.range.to, &to)}) {
    if (!text->empty()) {
      const Result<dataset::TransactionRid> rid = dataset::TransactionRid::Parse(*text);
      if (!rid.ok()) {
        return Status::InvalidArgument(
            fmt::format("{}: {} is no RID of a landing transaction", name, *text));
      }
      *end = *rid;
    }
  }
  for (const TransformInput& input : request.inputs) {
    TransformInput part = input;
    bool from_met = false;
    bool to_met = false;
    TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) {
      return deps.datasets.VisitCommitted(
          sql, input.dataset, dataset::kDefaultBranch,
          [&](const dataset::Transaction& transaction) -> Result<metastore::RowAction> {
            if (from_met) {
              part.after = transaction.rid;
              return metastore::RowAction::kStop;
            }
            to_met = to_met || (to && transaction.rid == *to);
            // Only behind the other end.
            from_met = from && transaction.rid == *from && (!to || to_met);
            return metastore::RowAction::kContinue;
          });
    }));
    if ((!from || from_met) && (!to || to_met)) {
      part.until = to;
      return std::vector<TransformInput>{std::move(part)};
    }
  }
  return Status::InvalidArgument(
      fmt::format("{}{}{}: no input of the task has landed {} in this order on its branch master",
                  request.range.from, from && to ? " to " : "", request.range.to,
                  from && to ? "these transactions" : "this transaction"));
}

// The inputs up to where the table has taken them in, those only that it has taken in anything of.
// What lands meanwhile is appended afterwards: taken in by the copy, it would be changed to here,
// back by its own append, and here once more.
Result<std::vector<TransformInput>> PinInputs(TargetTable& table,
                                              const std::vector<TransformInput>& inputs) {
  std::vector<TransformInput> pinned;
  for (TransformInput input : inputs) {
    TARN_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                          table.ReadInput(input.dataset.ToString()));
    if (!input.until) {
      if (!text) {
        continue;  // Nothing had landed there.
      }
      TARN_ASSIGN_OR_RETURN(input.until, dataset::TransactionRid::Parse(*text));
    }
    pinned.push_back(std::move(input));
  }
  return pinned;
}

// Takes in what has landed behind a range, so that the rows of the range that are not the newest
// of their keys any more tell by their time. Returns the time of the others.
Result<Timestamp> TakeLater(const pipeline::TransformSpec& copy_spec, const ReloadRequest& request,
                            TransformInput input, const TransformDeps& deps) {
  const Clock& clock = deps.catalog.deps().clock;
  const Timestamp until = clock.Now();
  for (int waited = 0; clock.Now() <= until; ++waited) {
    if (waited == 1000) {
      return Status::Unavailable("the clock of the server stands still");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  input.until.reset();
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<TransformTask> later,
                        TransformTask::Open(copy_spec, {std::move(input)}, request.place, deps));
  TARN_RETURN_IF_ERROR(Drain(*later, request.stop));
  return until;
}

Result<ReloadCounts> RunWithCopy(const ReloadRequest& request,
                                 const pipeline::TransformSpec& copy_spec,
                                 const TransformDeps& deps) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<TransformTask> task,
                        TransformTask::Open(request.spec, request.inputs, request.place, deps));
  TARN_RETURN_IF_ERROR(Drain(*task, request.stop));
  if (!task->table().exists()) {
    return ReloadCounts();  // Nothing has landed.
  }
  TransformDeps uncounted = deps;  // What is mapped once more was counted when it was taken in.
  uncounted.on_commit = {};
  TARN_ASSIGN_OR_RETURN(const std::vector<TransformInput> of_range, InputsOfRange(request, deps));
  const bool ends_before = of_range.front().until.has_value();
  TARN_ASSIGN_OR_RETURN(const std::vector<TransformInput> inputs,
                        PinInputs(task->table(), of_range));
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<TransformTask> copy,
                        TransformTask::Open(copy_spec, inputs, request.place, uncounted));
  // With the columns of the table rows are fitted to their types, as they always are.
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, task->table().Load());
  TARN_RETURN_IF_ERROR(copy->table().UseKey(task->table().spec().key));
  TARN_RETURN_IF_ERROR(copy->table().EnsureColumns(
      lakehouse::UserSchema(loaded.metadata->CurrentSchema()), deps.fence));
  const Timestamp start = deps.catalog.deps().clock.Now();
  TARN_RETURN_IF_ERROR(Drain(*copy, request.stop));
  std::optional<Timestamp> winners_until;
  if (ends_before) {
    TARN_ASSIGN_OR_RETURN(winners_until, TakeLater(copy_spec, request, inputs.front(), uncounted));
  }
  return Reload(request, deps, start, winners_until).Run(task->table(), copy->table());
}

}  // namespace

Result<ReloadType> ParseReloadType(std::string_view text) {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (text == kTypes[i]) {
      return static_cast<ReloadType>(i);
    }
  }
  return Status::InvalidArgument(
      fmt::format("type: expected {}, found \"{}\"", fmt::join(kTypes, ", "), text));
}

Result<ReloadCounts> ReloadTable(const ReloadRequest& request, const TransformDeps& deps) {
  if (request.spec.table.mode != lakehouse::Mode::kMerge) {
    return Status::FailedPrecondition(
        "rows of mode append have no key to compare them by: recreate the table instead");
  }
  if (!request.range.whole()) {
    if (request.type != ReloadType::kCompareAndApplyWithoutDeletes) {
      return Status::InvalidArgument(fmt::format(
          "type: from and to are only for {}: what other transactions landed would be taken for "
          "deleted",
          kTypes[static_cast<size_t>(ReloadType::kCompareAndApplyWithoutDeletes)]));
    }
    TARN_RETURN_IF_ERROR(StatusOf(InputsOfRange(request, deps)));  // Before anything is done.
  }
  const pipeline::TransformSpec copy_spec = SpecOfCopy(request.spec);
  TARN_RETURN_IF_ERROR(CheckStop(request.stop));
  TARN_RETURN_IF_ERROR(DropCopy(copy_spec, request, deps));
  Result<ReloadCounts> counts = RunWithCopy(request, copy_spec, deps);
  const Status dropped = DropCopy(copy_spec, request, deps);
  TARN_RETURN_IF_ERROR(counts.status());
  TARN_RETURN_IF_ERROR(dropped);
  return counts;
}

}  // namespace tarn::task
