#include "tarn/task/transform_task.h"

#include <algorithm>
#include <atomic>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/log.h"
#include "tarn/format/column_node.h"
#include "tarn/iceberg/schema_arrow.h"
#include "tarn/lakehouse/internal_schema.h"
#include "tarn/landing/landing_schema.h"
#include "tarn/landing/landing_state.h"
#include "tarn/task/batch_append.h"
#include "tarn/task/source_key.h"
#include "tarn/task/transform_failure.h"
#include "tarn/task/untyped_columns.h"
#include "tarn/transform/mapping.h"
#include "tarn/transform/schema_plan.h"

namespace tarn::task {

namespace {

using transform::CompiledMapping;
using transform::MappingSpec;

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

// The mappings of a batch. Inputs whose rows are mapped alike share one.
struct BatchMappings {
  std::vector<InputMapping> mappings;
  std::vector<size_t> mapping_of;  // By input; of one that the batch has nothing of: nothing.
};

}  // namespace

struct TransformTask::State {
  pipeline::TransformSpec spec;
  std::vector<TransformInput> inputs;
  std::string by;
  TransformDeps deps;
  std::unique_ptr<engine::Session> session;
  std::unique_ptr<lakehouse::TargetTable> table;
  TransformProgress progress;
  std::atomic<bool> cancelled{false};
  bool takes_source_key = false;
  bool missing_done = false;  // Landed columns only grow: what is given now will be later, too.

  State(pipeline::TransformSpec transform_spec, std::vector<TransformInput> transform_inputs,
        std::string user, TransformDeps transform_deps)
      : spec(std::move(transform_spec)),
        inputs(std::move(transform_inputs)),
        by(std::move(user)),
        deps(std::move(transform_deps)),
        takes_source_key(TakesSourceKey(spec.mapping)) {}

  Result<std::vector<LandedInput>> ReadConsumed();
  Result<bool> StepBatch();
  Result<std::vector<format::Field>> ReadFields(const TransformInput& input);
  Result<CompiledMapping> Compile(const std::vector<format::Field>& fields);
  Result<TableFit> FitToTable(const CompiledMapping& compiled);
  Result<std::vector<transform::SchemaStep>> ListMissing(const TransformInput& input);
  Status FitToMissing();
  Result<int64_t> SchemaId();
  Result<BatchMappings> MapInputs(const LandedBatch& batch);
  Result<BatchMappings> PlanMappings(const LandedBatch& batch);
  Status Append(const LandedBatch& batch);
  Status Commit(lakehouse::AppendCommit commit,
                const std::vector<landing::DeadLetterCommit>& letters,
                const TransformCounts& counted);
  Status AlsoCommit(metastore::SqlTransaction& sql, const TransformCounts& counted) const;
  Result<bool> IsBehind();
  Status ApplyIfDue(Sources sources);
  Status Apply();
};

// What a policy that halts says of a column.
Status Halted(const transform::SchemaStep& step, bool suspend, const std::string& owner) {
  if (!suspend) {
    return Status::FailedPrecondition(fmt::format("column {}: {}", step.column, step.reason));
  }
  return Status::FailedPrecondition(
             fmt::format("column {}: {}; schema_evolution says suspend_table: change the "
                         "pipeline file, apply it, and run: tarn task start {}",
                         step.column, step.reason, owner))
      .WithReason(std::string(kTableSuspended));
}

// What a changed input means for an existing table.
Result<TableFit> TransformTask::State::FitToTable(const CompiledMapping& compiled) {
  TableFit fit;
  transform::SchemaPolicies policies = spec.schema_policies;
  policies.drop_column = transform::SchemaPolicy::kIgnore;  // Of all inputs: see FitToMissing.
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, table->Load());
  TARN_ASSIGN_OR_RETURN(
      const std::shared_ptr<arrow::Schema> users,
      iceberg::ToArrowSchema(lakehouse::UserSchema(loaded.metadata->CurrentSchema())));
  for (const transform::SchemaStep& step :
       transform::PlanSchemaChange(*users, compiled.columns, policies, spec.case_sensitive)) {
    switch (step.action) {
      case transform::SchemaAction::kAdd:
        break;
      case transform::SchemaAction::kDrop:
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
        return Halted(step, /*suspend=*/true, spec.table.owner);
      case transform::SchemaAction::kStop:
        return Halted(step, /*suspend=*/false, spec.table.owner);
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
  mapping.left_out = fit.left_out;
  return transform::CompileMapping(*session, mapping, *landed, fit.columns);
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

// All inputs and how far appends took them in.
Result<std::vector<LandedInput>> TransformTask::State::ReadConsumed() {
  std::vector<LandedInput> read;
  for (const TransformInput& input : inputs) {
    TARN_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                          table->ReadInput(input.dataset.ToString()));
    std::optional<dataset::TransactionRid> consumed = input.after;
    if (text) {
      TARN_ASSIGN_OR_RETURN(consumed, dataset::TransactionRid::Parse(*text));
    }
    read.push_back({.dataset = input.dataset, .consumed = consumed, .until = input.until});
  }
  return read;
}

// The version of the table's columns; -1 before it exists.
Result<int64_t> TransformTask::State::SchemaId() {
  if (!table->exists()) {
    return -1;
  }
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, table->Load());
  return loaded.metadata->current_schema_id;
}

bool HasFiles(const LandedBatch& batch, size_t input) {
  return std::any_of(batch.files.begin(), batch.files.end(),
                     [&](const LandedFile& file) { return file.input == input; });
}

// Maps the inputs of a batch, one after the other; the table takes in what each of them brings.
Result<BatchMappings> TransformTask::State::MapInputs(const LandedBatch& batch) {
  BatchMappings all;
  all.mapping_of.resize(inputs.size());
  for (const auto& [index, newest] : batch.newest) {
    if (!HasFiles(batch, index)) {
      continue;  // Transactions without files may come before any column is known.
    }
    const TransformInput& input = inputs[index];
    InputMapping one;
    TARN_ASSIGN_OR_RETURN(one.fields, ReadFields(input));
    one.tombstones_delete = input.landing.kafka && input.landing.kafka->tombstone_deletes();
    const auto same =
        std::find_if(all.mappings.begin(), all.mappings.end(), [&](const InputMapping& known) {
          return known.fields == one.fields && known.tombstones_delete == one.tombstones_delete;
        });
    all.mapping_of[index] = static_cast<size_t>(same - all.mappings.begin());
    if (same != all.mappings.end()) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(one.mapping, Compile(one.fields));
    TARN_ASSIGN_OR_RETURN(const iceberg::Schema users, UsersOf(one.mapping));
    TARN_RETURN_IF_ERROR(table->EnsureColumns(users, deps.fence));
    all.mappings.push_back(std::move(one));
  }
  return all;
}

// Columns of the table that the mapping does not give for an input.
Result<std::vector<transform::SchemaStep>> TransformTask::State::ListMissing(
    const TransformInput& input) {
  TARN_ASSIGN_OR_RETURN(const std::vector<format::Field> fields, ReadFields(input));
  MappingSpec mapping = spec.mapping;
  LeaveOutUntyped(fields, mapping);
  TARN_ASSIGN_OR_RETURN(
      const CompiledMapping compiled,
      transform::CompileMapping(*session, mapping, *format::ToArrowSchema(fields)));
  TARN_ASSIGN_OR_RETURN(const catalog::LoadedTable loaded, table->Load());
  TARN_ASSIGN_OR_RETURN(
      const std::shared_ptr<arrow::Schema> users,
      iceberg::ToArrowSchema(lakehouse::UserSchema(loaded.metadata->CurrentSchema())));
  transform::SchemaPolicies policies = spec.schema_policies;
  policies.drop_column = transform::SchemaPolicy::kApply;
  std::vector<transform::SchemaStep> missing =
      transform::PlanSchemaChange(*users, compiled.columns, policies, spec.case_sensitive);
  std::erase_if(missing, [](const transform::SchemaStep& step) {
    return step.action != transform::SchemaAction::kDrop;
  });
  return missing;
}

// A column that no input gives any more goes under drop_column: apply, and halts the task where
// that says so. While some input cannot be mapped yet, such as one that has landed nothing, nobody
// knows, and all stay.
Status TransformTask::State::FitToMissing() {
  const transform::SchemaPolicy policy = spec.schema_policies.drop_column;
  if (missing_done || policy == transform::SchemaPolicy::kIgnore || !table->exists()) {
    return Status::Ok();
  }
  std::optional<std::vector<transform::SchemaStep>> missing;
  for (const TransformInput& input : inputs) {
    Result<std::vector<transform::SchemaStep>> one = ListMissing(input);
    if (!one.ok()) {
      return IsRetryable(one.status().code()) ? one.status() : Status::Ok();
    }
    if (missing) {
      std::erase_if(*missing, [&](const transform::SchemaStep& step) {
        return std::none_of(one->begin(), one->end(), [&](const transform::SchemaStep& other) {
          return other.column == step.column;
        });
      });
    } else {
      missing = *std::move(one);
    }
  }
  if (missing && !missing->empty()) {
    if (policy != transform::SchemaPolicy::kApply) {
      return Halted(missing->front(), policy == transform::SchemaPolicy::kSuspendTable,
                    spec.table.owner);
    }
    std::vector<std::string> dropped;
    for (const transform::SchemaStep& step : *missing) {
      dropped.push_back(step.column);
    }
    TARN_RETURN_IF_ERROR(table->DropColumns(dropped, deps.fence));
    Log(LogLevel::kNotice, "task",
        fmt::format("{}: dropped the columns {}", spec.table.owner, fmt::join(dropped, ", ")));
  }
  missing_done = true;
  return Status::Ok();
}

// What a later input brings may change what an earlier one has to give: when the table has changed
// under several mappings, they are made once more, and then nothing is new.
Result<BatchMappings> TransformTask::State::PlanMappings(const LandedBatch& batch) {
  TARN_RETURN_IF_ERROR(FitToMissing());
  TARN_ASSIGN_OR_RETURN(const int64_t before, SchemaId());
  TARN_ASSIGN_OR_RETURN(BatchMappings all, MapInputs(batch));
  if (all.mappings.size() > 1) {
    TARN_ASSIGN_OR_RETURN(const int64_t after, SchemaId());
    if (after != before) {
      return MapInputs(batch);
    }
  }
  return all;
}

// One batch of all inputs: one append with the positions of all.
Result<bool> TransformTask::State::StepBatch() {
  TARN_ASSIGN_OR_RETURN(const std::vector<LandedInput> consumed, ReadConsumed());
  TARN_ASSIGN_OR_RETURN(const LandedBatch batch,
                        ReadLandedBatch(deps.datasets, deps.database, consumed, spec.batch));
  if (batch.newest.empty() || (batch.files.empty() && !table->exists())) {
    return false;
  }
  TARN_RETURN_IF_ERROR(Append(batch));
  return true;
}

Status TransformTask::State::Append(const LandedBatch& batch) {
  const catalog::CatalogDeps& catalog = deps.catalog.deps();
  TARN_ASSIGN_OR_RETURN(const BatchMappings all, PlanMappings(batch));
  const Timestamp now = catalog.clock.Now();
  TARN_ASSIGN_OR_RETURN(const lakehouse::TargetTable::ChangesSession changes,
                        table->OpenChanges(now));
  BatchAppendOptions options{.task = spec.name, .mode = spec.table.mode, .now = now};
  TARN_ASSIGN_OR_RETURN(
      options.table,
      iceberg::ToArrowSchema(lakehouse::UserSchema(changes.table.metadata->CurrentSchema())));
  for (const TransformInput& input : inputs) {
    options.rejected.push_back(input.rejected);
  }
  BatchAppend append(std::move(options), {*session, catalog.warehouse, catalog.uuids,
                                          *changes.writer, progress.counts, cancelled});
  // A part stays until the end: relations of the session refer to it.
  const std::vector<LandedBatch> parts = SplitByGroup(batch, all.mapping_of);
  for (const LandedBatch& part : parts) {
    const size_t mapping = all.mapping_of[part.files.front().input];
    TARN_RETURN_IF_ERROR(append.Write(part, all.mappings[mapping]));
  }
  TARN_ASSIGN_OR_RETURN(std::vector<landing::DeadLetterCommit> letters, append.CloseDeadLetters());
  for (landing::DeadLetterCommit& letter : letters) {
    letter.by = by;
  }
  lakehouse::AppendCommit commit;
  TARN_ASSIGN_OR_RETURN(commit.written, changes.writer->Close());
  for (const auto& [index, newest] : batch.newest) {
    commit.inputs.push_back(
        {.dataset = inputs[index].dataset.ToString(), .transaction = newest.ToString()});
  }
  commit.now = now;
  TransformCounts counted = progress.counts;
  counted.rows_in += batch.rows;
  counted.rows_out += commit.written.row_count;
  counted.rejected += append.rejected();
  TARN_RETURN_IF_ERROR(Commit(std::move(commit), letters, counted));
  progress.counts = std::move(counted);
  for (const LandedFile& file : batch.files) {
    progress.data_updated_to = std::max(progress.data_updated_to, file.committed);
  }
  return Status::Ok();
}

// What belongs into the SQL transaction of every commit of rows.
Status TransformTask::State::AlsoCommit(metastore::SqlTransaction& sql,
                                        const TransformCounts& counted) const {
  if (deps.fence) {
    TARN_RETURN_IF_ERROR(deps.fence(sql));
  }
  return deps.on_commit ? deps.on_commit(sql, counted) : Status::Ok();
}

// The append, its dead letters and the counts, in one SQL transaction.
Status TransformTask::State::Commit(lakehouse::AppendCommit commit,
                                    const std::vector<landing::DeadLetterCommit>& letters,
                                    const TransformCounts& counted) {
  commit.also = [&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(AlsoCommit(sql, counted));
    for (const landing::DeadLetterCommit& letter : letters) {
      TARN_RETURN_IF_ERROR(landing::CommitDeadLetters(sql, deps.datasets, letter));
    }
    return Status::Ok();
  };
  const Status committed = StatusOf(table->CommitAppend(std::move(commit)));
  if (!committed.ok() && committed.code() != ErrorCode::kCommitStateUnknown) {
    for (const landing::DeadLetterCommit& letter : letters) {
      const Status removed = deps.catalog.deps().warehouse.Delete(letter.file.location);
      if (!removed.ok()) {  // The sweep of the dataset gets it.
        Log(LogLevel::kWarning, "task", letter.file.location + ": " + removed.ToString());
      }
    }
  }
  return committed;
}

Status TransformTask::State::Apply() {
  const auto count = [&](const lakehouse::ApplyCounts& applied) {
    TransformCounts counted = progress.counts;
    ++counted.applies;
    counted.noop_deletes += applied.noop_deletes;
    return counted;
  };
  TARN_ASSIGN_OR_RETURN(
      const std::optional<lakehouse::CommittedApply> applied,
      table->Apply(deps.catalog.deps().clock.Now(),
                   [&](metastore::SqlTransaction& sql, const lakehouse::ApplyCounts& applied_now) {
                     return AlsoCommit(sql, count(applied_now));
                   }));
  if (applied) {
    progress.counts = count(applied->counts);
  }
  TARN_ASSIGN_OR_RETURN(const lakehouse::UnappliedWork work, table->ReadUnapplied());
  progress.unapplied = work.rows;
  return Status::Ok();
}

// True while landed transactions wait that no append took in.
Result<bool> TransformTask::State::IsBehind() {
  TARN_ASSIGN_OR_RETURN(const std::vector<LandedInput> consumed, ReadConsumed());
  for (const LandedInput& input : consumed) {
    TARN_ASSIGN_OR_RETURN(const bool waits, HasLandedSince(deps.datasets, deps.database, input));
    if (waits) {
      return true;
    }
  }
  return false;
}

Status TransformTask::State::ApplyIfDue(Sources sources) {
  TARN_ASSIGN_OR_RETURN(const lakehouse::UnappliedWork work, table->ReadUnapplied());
  progress.unapplied = work.rows;
  const Timestamp now = deps.catalog.deps().clock.Now();
  if (!lakehouse::IsApplyDue(work, spec.table.apply, now)) {
    return Status::Ok();
  }
  bool behind = sources == Sources::kBehind;
  if (!behind) {
    TARN_ASSIGN_OR_RETURN(behind, IsBehind());
  }
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
  auto state =
      std::make_unique<State>(std::move(spec), std::move(inputs), place.by, std::move(deps));
  TARN_ASSIGN_OR_RETURN(state->session, state->deps.engine.OpenSession());
  TARN_ASSIGN_OR_RETURN(
      state->table,
      lakehouse::TargetTable::Open(state->spec.table, std::move(place), state->deps.catalog));
  TARN_RETURN_IF_ERROR(state->table->RenewViews(state->deps.fence));
  return std::unique_ptr<TransformTask>(new TransformTask(std::move(state)));
}

Result<TransformProgress> TransformTask::Step(Sources sources) {
  const Result<bool> stepped = state_->StepBatch();
  if (!stepped.ok()) {
    return OfTransform(state_->spec.name, stepped.status());
  }
  state_->progress.caught_up = !*stepped;
  TARN_RETURN_IF_ERROR(state_->ApplyIfDue(sources));
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
