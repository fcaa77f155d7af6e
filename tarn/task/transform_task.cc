#include "tarn/task/transform_task.h"

#include <algorithm>
#include <atomic>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/crash_point.h"
#include "tarn/format/column_node.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/landing/landing_schema.h"
#include "tarn/landing/landing_state.h"
#include "tarn/task/change_split.h"
#include "tarn/task/direct_rows.h"
#include "tarn/task/landed_relation.h"
#include "tarn/task/source_key.h"
#include "tarn/transform/direct_mapping.h"
#include "tarn/transform/mapping.h"
#include "tarn/transform/schema_plan.h"

namespace tarn::task {

namespace {

using transform::CompiledMapping;
using transform::MappingSpec;

bool Mentions(const MappingSpec& spec, const std::string& column) {
  const auto in = [&](const std::string& text) { return text.find(column) != std::string::npos; };
  bool found = in(spec.where) || in(spec.delete_when) || in(spec.event_time);
  for (const transform::ColumnMapping& mapped : spec.columns) {
    found = found || mapped.name == column || in(mapped.expression);
  }
  for (const transform::Expectation& expectation : spec.expect) {
    found = found || in(expectation.check);
  }
  return found || std::find(spec.key.begin(), spec.key.end(), column) != spec.key.end();
}

// Columns that only ever were NULL have no type yet: they are taken in when they get one.
void LeaveOutUntyped(const std::vector<format::Field>& fields, MappingSpec& spec) {
  for (const format::Field& field : fields) {
    if (field.type.detail == format::FieldDetail::kUntyped && !Mentions(spec, field.name)) {
      spec.drop.push_back(field.name);
    }
  }
}

bool SameName(const std::string& a, const std::string& b) {
  return format::FoldCase(a) == format::FoldCase(b);
}

// What an existing table asks of a mapping.
struct TableFit {
  std::vector<transform::ColumnFit> columns;
  std::vector<std::string> left_out;  // Columns that the table does not take.
};

const transform::MappedColumn* FindMapped(const CompiledMapping& compiled,
                                          const std::string& name) {
  const auto found = std::find_if(compiled.columns.begin(), compiled.columns.end(),
                                  [&](const auto& column) { return SameName(column.name, name); });
  return found == compiled.columns.end() ? nullptr : &*found;
}

// Nested values are written with all members of the table's column, in its order.
void FitNested(const CompiledMapping& compiled, const transform::SchemaStep& step, TableFit& fit) {
  const transform::MappedColumn* column = FindMapped(compiled, step.column);
  if (column != nullptr && arrow::is_nested(step.type->id()) &&
      !column->type->Equals(*step.type, false)) {
    fit.columns.push_back({.column = step.column, .type = step.type});
  }
}

// The table's type stays. Values that do not fit are rejected, or go to the suffixed column; those
// of a key are always rejected: two keys that do not fit would be one.
Status FitType(const CompiledMapping& compiled, const transform::SchemaStep& step, TableFit& fit) {
  const transform::MappedColumn* column = FindMapped(compiled, step.column);
  if (column != nullptr && column->hashed) {
    return Status::FailedPrecondition(
        fmt::format("column {}: {}; a hash is no value of that type", step.column, step.reason));
  }
  transform::ColumnFit one{.column = step.column, .type = step.from_type};
  const std::vector<std::string>& key = compiled.spec.key;
  const bool is_key = std::any_of(
      key.begin(), key.end(), [&](const std::string& name) { return SameName(name, step.column); });
  if (step.action == transform::SchemaAction::kSuffix && !is_key) {
    one.overflow = step.suffixed_column;
    one.overflow_type = step.suffixed_type;
  }
  fit.columns.push_back(std::move(one));
  return Status::Ok();
}

// With case_sensitive: true a key must be spelled as its column is.
Status CheckKeySpelling(const CompiledMapping& compiled) {
  for (size_t i = 0; i < compiled.key_columns.size(); ++i) {
    const std::string& name = compiled.columns[static_cast<size_t>(compiled.key_columns[i])].name;
    if (name != compiled.spec.key[i]) {
      return Status::InvalidArgument(
          fmt::format("key: there is no column \"{}\"; there is \"{}\", and case_sensitive is true",
                      compiled.spec.key[i], name));
    }
  }
  return Status::Ok();
}

Result<iceberg::Schema> UsersOf(const CompiledMapping& mapping) {
  iceberg::Schema users;
  int32_t id = 1;
  for (const transform::MappedColumn& column : mapping.columns) {
    TARN_ASSIGN_OR_RETURN(const iceberg::Schema one,
                          iceberg::FromArrowSchema(arrow::Schema(
                              {arrow::field(column.name, column.type, /*nullable=*/true)})));
    iceberg::SchemaField field = one.fields.front();
    field.id = id++;
    users.fields.push_back(std::move(field));
  }
  return users;
}

}  // namespace

struct TransformTask::State {
  pipeline::TransformSpec spec;
  std::vector<TransformInput> inputs;
  TransformDeps deps;
  std::unique_ptr<engine::Session> session;
  std::unique_ptr<lakehouse::TargetTable> table;
  TransformProgress progress;
  std::atomic<bool> cancelled{false};
  bool takes_source_key = false;

  State(pipeline::TransformSpec transform_spec, std::vector<TransformInput> transform_inputs,
        TransformDeps transform_deps)
      : spec(std::move(transform_spec)),
        inputs(std::move(transform_inputs)),
        deps(std::move(transform_deps)),
        takes_source_key(TakesSourceKey(spec.mapping)) {}

  Result<std::optional<dataset::TransactionRid>> ReadConsumed(const TransformInput& input);
  Result<bool> StepInput(const TransformInput& input);
  Result<std::vector<format::Field>> ReadFields(const TransformInput& input);
  Result<CompiledMapping> Compile(const std::vector<format::Field>& fields);
  Result<TableFit> FitToTable(const CompiledMapping& compiled);
  Status Append(const TransformInput& input, const LandedBatch& batch,
                const std::vector<format::Field>& fields, const CompiledMapping& mapping);
  Result<std::shared_ptr<arrow::RecordBatch>> TakeOutcome(
      const CompiledMapping& mapping, const arrow::RecordBatch& mapped,
      std::vector<transform::RejectedRow>& rejected);
  [[nodiscard]] ChangeSplitOptions SplitOptions(const CompiledMapping& mapping,
                                                const LandedBatch& batch,
                                                const arrow::Schema& users) const;
  Status WriteChanges(const ChangeSplitOptions& options, const arrow::RecordBatch& good,
                      lakehouse::ChangesWriter& writer,
                      std::vector<transform::RejectedRow>& rejected);
  Status AppendRows(const CompiledMapping& mapping, const LandedBatch& batch,
                    lakehouse::ChangesWriter& writer, std::vector<landing::DeadLetter>& letters,
                    const arrow::Schema& users);
  Result<bool> AppendDirectly(const CompiledMapping& mapping, const LandedBatch& batch,
                              const std::vector<format::Field>& fields,
                              lakehouse::ChangesWriter& writer, const arrow::Schema& users);
  Result<bool> IsBehind();
  Status ApplyIfDue();
  Status Apply();
};

// What a changed input means for an existing table.
Result<TableFit> TransformTask::State::FitToTable(const CompiledMapping& compiled) {
  TableFit fit;
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, table->Load());
  TARN_ASSIGN_OR_RETURN(
      const std::shared_ptr<arrow::Schema> users,
      iceberg::ToArrowSchema(lakehouse::UserSchema(loaded.metadata->CurrentSchema())));
  for (const transform::SchemaStep& step : transform::PlanSchemaChange(
           *users, compiled.columns, spec.schema_policies, spec.case_sensitive)) {
    switch (step.action) {
      case transform::SchemaAction::kAdd:
        break;
      case transform::SchemaAction::kKeep:
      case transform::SchemaAction::kWiden:
        FitNested(compiled, step, fit);
        break;
      case transform::SchemaAction::kNarrow:
      case transform::SchemaAction::kSuffix:
        TARN_RETURN_IF_ERROR(FitType(compiled, step, fit));
        break;
      case transform::SchemaAction::kLeaveOut:
        fit.left_out.push_back(step.column);
        break;
      case transform::SchemaAction::kSuspend:
        return Status::FailedPrecondition(
                   fmt::format("column {}: {}; schema_evolution says suspend_table: change the "
                               "pipeline file, apply it, and run: tarn task start {}",
                               step.column, step.reason, spec.table.owner))
            .WithReason(std::string(kTableSuspended));
      case transform::SchemaAction::kDrop:
      case transform::SchemaAction::kStop:
        return Status::FailedPrecondition(fmt::format("column {}: {}", step.column, step.reason));
    }
  }
  return fit;
}

Result<CompiledMapping> TransformTask::State::Compile(const std::vector<format::Field>& fields) {
  MappingSpec mapping = spec.mapping;
  LeaveOutUntyped(fields, mapping);
  const std::shared_ptr<arrow::Schema> landed = format::ToArrowSchema(fields);
  Result<CompiledMapping> made = transform::CompileMapping(*session, mapping, *landed);
  if (!made.ok() && takes_source_key) {
    return made.status().WithContext(fmt::format("with the source's key [{}], as key: is not given",
                                                 fmt::join(mapping.key, ", ")));
  }
  TARN_ASSIGN_OR_RETURN(CompiledMapping compiled, std::move(made));
  if (spec.case_sensitive) {
    TARN_RETURN_IF_ERROR(CheckKeySpelling(compiled));
  }
  if (!table->exists()) {
    return compiled;
  }
  TARN_ASSIGN_OR_RETURN(const TableFit fit, FitToTable(compiled));
  if (fit.columns.empty() && fit.left_out.empty()) {
    return compiled;
  }
  mapping.drop.insert(mapping.drop.end(), fit.left_out.begin(), fit.left_out.end());
  return transform::CompileMapping(*session, mapping, *landed, fit.columns);
}

// The good rows of a batch; counts the others and collects those that were rejected.
Result<std::shared_ptr<arrow::RecordBatch>> TransformTask::State::TakeOutcome(
    const CompiledMapping& mapping, const arrow::RecordBatch& mapped,
    std::vector<transform::RejectedRow>& rejected) {
  TARN_ASSIGN_OR_RETURN(const transform::MappedBatch outcome,
                        transform::SplitOutcome(mapping, mapped));
  rejected.insert(rejected.end(), outcome.rejected.begin(), outcome.rejected.end());
  progress.counts.filtered += outcome.counts.dropped + outcome.counts.empty_arrays;
  progress.counts.null_casts += outcome.counts.null_casts;
  for (const auto& [name, count] : outcome.counts.null_checks) {
    progress.counts.null_checks += count;
    progress.counts.unchecked[name] += count;
  }
  for (const auto& [name, count] : outcome.counts.warnings) {
    progress.counts.warned[name] += count;
  }
  return outcome.good;
}

ChangeSplitOptions TransformTask::State::SplitOptions(const CompiledMapping& mapping,
                                                      const LandedBatch& batch,
                                                      const arrow::Schema& users) const {
  return {.mapping = &mapping,
          .landed = &batch,
          .mode = spec.table.mode,
          .table = std::make_shared<arrow::Schema>(users)};
}

// Good rows as changes; counts those that are none and collects those that are rejected.
Status TransformTask::State::WriteChanges(const ChangeSplitOptions& options,
                                          const arrow::RecordBatch& good,
                                          lakehouse::ChangesWriter& writer,
                                          std::vector<transform::RejectedRow>& rejected) {
  TARN_ASSIGN_OR_RETURN(ChangeSplit split, SplitChanges(options, good));
  std::move(split.rejected.begin(), split.rejected.end(), std::back_inserter(rejected));
  progress.counts.truncates += split.truncates;
  progress.counts.filtered += split.filtered;
  return split.changes.rows->num_rows() > 0 ? writer.Write(split.changes) : Status::Ok();
}

Status TransformTask::State::AppendRows(const CompiledMapping& mapping, const LandedBatch& batch,
                                        lakehouse::ChangesWriter& writer,
                                        std::vector<landing::DeadLetter>& letters,
                                        const arrow::Schema& users) {
  const ChangeSplitOptions options = SplitOptions(mapping, batch, users);
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<engine::ArrowStream> stream, session->Query(mapping.sql));
  std::vector<transform::RejectedRow> rejected;
  const auto write = [&](const arrow::RecordBatch& good) {
    return WriteChanges(options, good, writer, rejected);
  };
  transform::InputRowCount seen;
  std::shared_ptr<arrow::RecordBatch> carried;  // The last row: its before image may come next.
  while (true) {
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> mapped, stream->Next());
    if (mapped == nullptr) {
      break;
    }
    seen.Add(mapping, *mapped);
    TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> good,
                          TakeOutcome(mapping, *mapped, rejected));
    if (good == nullptr || good->num_rows() == 0) {
      continue;
    }
    if (carried != nullptr) {
      TARN_ASSIGN_OR_RETURN(good, arrow::ConcatenateRecordBatches({carried, good}));
    }
    carried = good->Slice(good->num_rows() - 1);
    // A before image that ends the batch stays with its change, which is processed now.
    const auto before = std::dynamic_pointer_cast<arrow::BooleanArray>(
        carried->GetColumnByName(std::string(transform::kBeforeColumn)));
    if (before != nullptr && before->IsValid(0) && before->Value(0)) {
      carried.reset();
      TARN_RETURN_IF_ERROR(write(*good));
      continue;
    }
    TARN_RETURN_IF_ERROR(write(*good->Slice(0, good->num_rows() - 1)));
  }
  stream.reset();  // The second look needs the session.
  if (carried != nullptr) {
    TARN_RETURN_IF_ERROR(write(*carried));
  }
  if (!mapping.spec.where.empty()) {
    progress.counts.filtered += batch.rows - seen.rows();
  }
  TARN_RETURN_IF_ERROR(transform::ReadLanded(*session, rejected));
  for (const transform::RejectedRow& row : rejected) {
    letters.push_back(MakeDeadLetter(row, spec.name));
  }
  return Status::Ok();
}

// False, and nothing written, when the rows need the mapping's statement.
Result<bool> TransformTask::State::AppendDirectly(const CompiledMapping& mapping,
                                                  const LandedBatch& batch,
                                                  const std::vector<format::Field>& fields,
                                                  lakehouse::ChangesWriter& writer,
                                                  const arrow::Schema& users) {
  const auto direct = transform::DirectMapping::Of(mapping, *format::ToArrowSchema(fields));
  if (!direct) {
    return false;
  }
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<DirectRows> rows,
                        DirectRows::Open(deps.catalog.deps().warehouse, batch, *direct, fields));
  if (rows == nullptr) {
    return false;
  }
  const ChangeSplitOptions options = SplitOptions(mapping, batch, users);
  std::vector<transform::RejectedRow> rejected;
  while (true) {
    if (cancelled.load()) {
      return Status(ErrorCode::kCancelled, "transform " + spec.name + " was stopped");
    }
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> good, rows->Next());
    if (good == nullptr) {
      return true;
    }
    TARN_RETURN_IF_ERROR(WriteChanges(options, *good, writer, rejected));
    if (!rejected.empty()) {
      return Status::Internal("transform " + spec.name + ": a direct mapping rejected rows");
    }
  }
}

Status TransformTask::State::Append(const TransformInput& input, const LandedBatch& batch,
                                    const std::vector<format::Field>& fields,
                                    const CompiledMapping& mapping) {
  const catalog::CatalogDeps& deps_of_catalog = deps.catalog.deps();
  TARN_ASSIGN_OR_RETURN(const iceberg::Schema users, UsersOf(mapping));
  TARN_RETURN_IF_ERROR(table->EnsureColumns(users));
  const Timestamp now = deps_of_catalog.clock.Now();
  TARN_ASSIGN_OR_RETURN(const lakehouse::TargetTable::ChangesSession changes,
                        table->OpenChanges(now));
  TARN_ASSIGN_OR_RETURN(
      const std::shared_ptr<arrow::Schema> table_schema,
      iceberg::ToArrowSchema(lakehouse::UserSchema(changes.table.metadata->CurrentSchema())));
  std::vector<landing::DeadLetter> letters;
  TARN_ASSIGN_OR_RETURN(const bool direct,
                        AppendDirectly(mapping, batch, fields, *changes.writer, *table_schema));
  if (!direct && !batch.files.empty()) {
    TARN_RETURN_IF_ERROR(RegisterLanded(*session, deps_of_catalog.warehouse, batch, fields));
    TARN_RETURN_IF_ERROR(AppendRows(mapping, batch, *changes.writer, letters, *table_schema));
  }
  lakehouse::AppendCommit commit;
  TARN_ASSIGN_OR_RETURN(commit.written, changes.writer->Close());
  commit.inputs = {{.dataset = input.dataset.ToString(), .transaction = batch.newest->ToString()}};
  commit.now = now;
  std::optional<dataset::StoredFile> letter_file;
  if (!letters.empty()) {
    TARN_ASSIGN_OR_RETURN(
        letter_file, landing::WriteDeadLetters(deps_of_catalog.warehouse, deps_of_catalog.uuids,
                                               input.rejected, letters, now));
  }
  commit.also = [&](metastore::SqlTransaction& sql) -> Status {
    if (deps.fence) {
      TARN_RETURN_IF_ERROR(deps.fence(sql));
    }
    if (!letter_file) {
      return Status::Ok();
    }
    dataset::CommitFilesRequest request;
    request.dataset = input.rejected;
    request.files = {*letter_file};
    request.commit.by = spec.name;
    TARN_RETURN_IF_ERROR(deps.datasets.CommitFiles(sql, request));
    return Status::Ok();
  };
  const int64_t written = commit.written.row_count;
  TARN_RETURN_IF_ERROR(table->CommitAppend(std::move(commit)));
  progress.counts.rows_in += batch.rows;
  progress.counts.rows_out += written;
  progress.counts.rejected += static_cast<int64_t>(letters.size());
  if (!batch.files.empty()) {
    progress.data_updated_to = batch.files.back().committed;
  }
  return Status::Ok();
}

// The landed columns as known now; takes the source's key over where that is wanted.
Result<std::vector<format::Field>> TransformTask::State::ReadFields(const TransformInput& input) {
  format::ColumnSet columns;
  landing::SourceKeys keys;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    const std::string dataset = input.dataset.ToString();
    TARN_ASSIGN_OR_RETURN(columns, landing::ReadColumns(sql, dataset));
    if (takes_source_key) {
      TARN_ASSIGN_OR_RETURN(keys, landing::ReadKeys(sql, dataset));
    }
    return Status::Ok();
  }));
  if (takes_source_key) {
    TARN_ASSIGN_OR_RETURN(spec.mapping.key, SourceKeyOf(keys, spec.mapping));
    TARN_RETURN_IF_ERROR(table->UseKey(spec.mapping.key));
  }
  return landing::LandingFields(input.landing, columns);
}

// The newest transaction of the input that an append took in.
Result<std::optional<dataset::TransactionRid>> TransformTask::State::ReadConsumed(
    const TransformInput& input) {
  TARN_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                        table->ReadInput(input.dataset.ToString()));
  std::optional<dataset::TransactionRid> consumed;
  if (text) {
    TARN_ASSIGN_OR_RETURN(consumed, dataset::TransactionRid::Parse(*text));
  }
  return consumed;
}

Result<bool> TransformTask::State::StepInput(const TransformInput& input) {
  TARN_ASSIGN_OR_RETURN(const std::optional<dataset::TransactionRid> consumed, ReadConsumed(input));
  TARN_ASSIGN_OR_RETURN(
      const LandedBatch batch,
      ReadLandedBatch(deps.datasets, deps.database, input.dataset, consumed, spec.batch));
  if (!batch.newest) {
    return false;
  }
  TARN_ASSIGN_OR_RETURN(const std::vector<format::Field> fields, ReadFields(input));
  TARN_ASSIGN_OR_RETURN(const CompiledMapping mapping, Compile(fields));
  TARN_RETURN_IF_ERROR(Append(input, batch, fields, mapping));
  progress.lag_rows = batch.rows_left;
  return true;
}

Status TransformTask::State::Apply() {
  TARN_ASSIGN_OR_RETURN(const std::optional<lakehouse::CommittedApply> applied,
                        table->Apply(deps.catalog.deps().clock.Now(), deps.fence));
  if (applied) {
    ++progress.counts.applies;
    progress.counts.noop_deletes += applied->counts.noop_deletes;
  }
  TARN_ASSIGN_OR_RETURN(const lakehouse::UnappliedWork work, table->ReadUnapplied());
  progress.unapplied = work.rows;
  return Status::Ok();
}

// True while landed transactions wait that no append took in.
Result<bool> TransformTask::State::IsBehind() {
  for (const TransformInput& input : inputs) {
    TARN_ASSIGN_OR_RETURN(const std::optional<dataset::TransactionRid> consumed,
                          ReadConsumed(input));
    TARN_ASSIGN_OR_RETURN(const bool waits,
                          HasLandedSince(deps.datasets, deps.database, input.dataset, consumed));
    if (waits) {
      return true;
    }
  }
  return false;
}

Status TransformTask::State::ApplyIfDue() {
  TARN_ASSIGN_OR_RETURN(const lakehouse::UnappliedWork work, table->ReadUnapplied());
  progress.unapplied = work.rows;
  const Timestamp now = deps.catalog.deps().clock.Now();
  if (!lakehouse::IsApplyDue(work, spec.table.apply, now)) {
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(const bool behind, IsBehind());
  if (behind && !lakehouse::IsApplyDue(work, lakehouse::WhileBehind(spec.table.apply), now)) {
    return Status::Ok();
  }
  return Apply();
}

TransformTask::TransformTask(std::unique_ptr<State> state) : state_(std::move(state)) {}
TransformTask::~TransformTask() = default;

Result<std::unique_ptr<TransformTask>> TransformTask::Open(pipeline::TransformSpec spec,
                                                           std::vector<TransformInput> inputs,
                                                           lakehouse::TargetPlace place,
                                                           TransformDeps deps) {
  auto state = std::make_unique<State>(std::move(spec), std::move(inputs), std::move(deps));
  TARN_ASSIGN_OR_RETURN(state->session, state->deps.engine.OpenSession());
  TARN_ASSIGN_OR_RETURN(
      state->table,
      lakehouse::TargetTable::Open(state->spec.table, std::move(place), state->deps.catalog));
  TARN_RETURN_IF_ERROR(state->table->RenewViews(state->deps.fence));
  return std::unique_ptr<TransformTask>(new TransformTask(std::move(state)));
}

Result<TransformProgress> TransformTask::Step() {
  state_->progress.caught_up = true;
  for (const TransformInput& input : state_->inputs) {
    const Result<bool> stepped = state_->StepInput(input);
    if (!stepped.ok()) {
      return stepped.status().WithContext("transform " + state_->spec.name);
    }
    state_->progress.caught_up = state_->progress.caught_up && !*stepped;
  }
  TARN_RETURN_IF_ERROR(state_->ApplyIfDue());
  return state_->progress;
}

Result<TransformProgress> TransformTask::ApplyNow() {
  TARN_RETURN_IF_ERROR(state_->Apply());
  return state_->progress;
}

void TransformTask::Cancel() {
  state_->cancelled.store(true);
  state_->session->Interrupt();
}

lakehouse::TargetTable& TransformTask::table() { return *state_->table; }

}  // namespace tarn::task
