#include "tarn/lakehouse/apply_pass.h"

#include <algorithm>
#include <map>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/iceberg/literal.h"
#include "tarn/lakehouse/file_rows.h"
#include "tarn/lakehouse/header_columns.h"
#include "tarn/lakehouse/internal_schema.h"

namespace tarn::lakehouse {

namespace {

constexpr uint32_t kNoChange = UINT32_MAX;

const arrow::Array& Column(const arrow::RecordBatch& batch, HeaderColumn column) {
  return *batch.GetColumnByName(std::string(Name(column)));
}

// Microseconds of a timestamp column; NULL reads as kNoTimeMicros.
class Times {
 public:
  Times(const arrow::RecordBatch& batch, HeaderColumn column)
      : array_(static_cast<const arrow::TimestampArray&>(Column(batch, column))) {}
  int64_t operator[](int64_t row) const {
    return array_.IsNull(row) ? kNoTimeMicros : array_.Value(row);
  }

 private:
  const arrow::TimestampArray& array_;
};

char OperationAt(const arrow::StringArray& operations, int64_t row) {
  return operations.IsNull(row) || operations.GetView(row).empty() ? '\0'
                                                                   : operations.GetView(row)[0];
}

bool IsDeleted(char operation) { return operation == 'D' || operation == 'd'; }

}  // namespace

// Rows of one batch of values that go to each destination.
struct ApplyPass::Batch {
  std::vector<VersionRow> current;
  std::vector<VersionRow> current_deleted;
  std::vector<VersionRow> prior;
  std::vector<VersionRow> prior_deleted;
};

ApplyPass::ApplyPass(const ApplyRequest& request, const ApplyDeps& deps, PassShare share)
    : request_(request),
      deps_(deps),
      share_(share),
      range_(request.metadata.CurrentSchema(), request.spec.key) {}

bool ApplyPass::InShare(const KeyBatch& keys, int64_t row) const {
  // Bytes that KeyIndex does not use, so that a share still spreads over its table.
  const uint8_t* hash = keys.Hash(row) + 8;
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) {
    value = value << 8 | hash[i];
  }
  return value % share_.count == share_.number;
}

std::vector<std::string> ApplyPass::Columns(const std::vector<std::string_view>& headers) const {
  return {headers.begin(), headers.end()};
}

std::vector<std::shared_ptr<arrow::Array>> ApplyPass::KeyColumns(
    const arrow::RecordBatch& batch) const {
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (const std::string& key : request_.spec.key) {
    columns.push_back(batch.GetColumnByName(key));
  }
  return columns;
}

Result<std::shared_ptr<const KeyBatch>> ApplyPass::KeysOf(const arrow::RecordBatch& batch) const {
  return KeyBatch::Make(batch.GetColumnByName(std::string(Name(HeaderColumn::kKeyHash))),
                        KeyColumns(batch));
}

Status ApplyPass::AddChanges(const arrow::RecordBatch& batch) {
  TARN_RETURN_IF_ERROR(range_.Add(KeyColumns(batch)));
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<const KeyBatch> key_batch, KeysOf(batch));
  const auto& operations =
      static_cast<const arrow::StringArray&>(Column(batch, HeaderColumn::kOperation));
  const Times timestamps(batch, HeaderColumn::kTimestamp);
  const Times inserted(batch, HeaderColumn::kInsertedTimestamp);
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(batch.num_rows()));
  for (int64_t row = 0; row < batch.num_rows(); ++row) {
    if (share_.count == 1 || InShare(*key_batch, row)) {
      rows.push_back(row);
    }
  }
  std::vector<uint32_t> slots;
  index_.FindOrAddAll(key_batch, rows, slots);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t row = rows[i];
    const char operation = OperationAt(operations, row);
    if (operation != 'I' && operation != 'U' && operation != 'D' && operation != 'L') {
      return Status::Corruption(
          fmt::format("a change of {} has the operation \"{}\"", request_.spec.name, operation));
    }
    changes_.push_back({.slot = slots[i],
                        .operation = static_cast<Operation>(operation),
                        .timestamp_micros = timestamps[row],
                        .inserted_micros = inserted[row]});
    ordinals_.push_back(rows_read_ + row);
  }
  rows_read_ += batch.num_rows();
  return Status::Ok();
}

// True when all values of the changes fit the memory: they are read once, not twice.
bool ApplyPass::CanHoldValues() const {
  constexpr int64_t kExpansion = 3;  // Of encoded values in memory.
  constexpr int64_t kHeaderBytesPerRow = 48;
  int64_t bytes = request_.files.change_rows() * kHeaderBytesPerRow;
  for (const FileScanTask& task : request_.files.changes) {
    for (const auto& [field_id, size] : task.file.column_sizes) {
      bytes += field_id >= kFirstUserFieldId ? size * kExpansion : 0;
    }
  }
  return share_.count == 1 && bytes <= static_cast<int64_t>(request_.spec.memory_bytes / 2);
}

Status ApplyPass::ReadChanges() {
  std::vector<std::string> columns =
      Columns({Name(HeaderColumn::kKeyHash), Name(HeaderColumn::kOperation),
               Name(HeaderColumn::kTimestamp), Name(HeaderColumn::kInsertedTimestamp)});
  holds_values_ = CanHoldValues();
  const std::vector<std::string> values =
      holds_values_ ? UserColumnNames(request_.metadata.CurrentSchema()) : request_.spec.key;
  columns.insert(columns.end(), values.begin(), values.end());
  const auto expected =
      static_cast<size_t>(request_.files.change_rows()) / static_cast<size_t>(share_.count);
  changes_.reserve(expected);
  ordinals_.reserve(expected);
  index_.Reserve(expected);
  for (const FileScanTask& task : request_.files.changes) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<FileRows> rows,
                          FileRows::Open(deps_.store, {.file_path = task.file.file_path,
                                                       .schema = &request_.metadata.CurrentSchema(),
                                                       .columns = columns}));
    while (true) {
      TARN_ASSIGN_OR_RETURN(const FileRowsBatch batch, rows->Next());
      if (batch.rows == nullptr) {
        break;
      }
      TARN_RETURN_IF_ERROR(AddChanges(*batch.rows));
      if (holds_values_) {
        held_.push_back(batch.rows);
      }
    }
  }
  return Status::Ok();
}

Status ApplyPass::LocateInCurrent(size_t file, const std::vector<int64_t>& deleted) {
  std::vector<std::string> columns =
      Columns({Name(HeaderColumn::kKeyHash), Name(HeaderColumn::kOperation),
               Name(HeaderColumn::kFromTimestamp), Name(HeaderColumn::kInsertedTimestamp),
               Name(HeaderColumn::kModifiedTimestamp)});
  columns.insert(columns.end(), request_.spec.key.begin(), request_.spec.key.end());
  const iceberg::DataFile& data_file = request_.files.current[file].file;
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<FileRows> rows,
                        FileRows::Open(deps_.store, {.file_path = data_file.file_path,
                                                     .schema = &request_.metadata.CurrentSchema(),
                                                     .columns = columns}));
  std::vector<uint32_t> slots;
  while (true) {
    TARN_ASSIGN_OR_RETURN(const FileRowsBatch batch, rows->Next());
    if (batch.rows == nullptr) {
      return Status::Ok();
    }
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<const KeyBatch> key_batch, KeysOf(*batch.rows));
    const auto& operations =
        static_cast<const arrow::StringArray&>(Column(*batch.rows, HeaderColumn::kOperation));
    const Times from(*batch.rows, HeaderColumn::kFromTimestamp);
    const Times inserted(*batch.rows, HeaderColumn::kInsertedTimestamp);
    const Times modified(*batch.rows, HeaderColumn::kModifiedTimestamp);
    const std::vector<int64_t> live = LiveRows(batch, deleted);
    index_.FindAll(*key_batch, live, slots);
    for (size_t i = 0; i < live.size(); ++i) {
      const int64_t row = live[i];
      const uint32_t slot = slots[i];
      if (slot == kNoSlot) {
        continue;
      }
      if (bases_[slot].found) {
        return Status::Corruption(fmt::format("{}: a key is live twice in Current, again at row {}",
                                              data_file.file_path, batch.first_position + row));
      }
      bases_[slot] = {.file = static_cast<uint32_t>(file),
                      .position = batch.first_position + row,
                      .modified_micros = modified[row],
                      .found = true};
      starts_[slot].base = BaseVersion{.live = !IsDeleted(OperationAt(operations, row)),
                                       .from_micros = from[row],
                                       .inserted_micros = inserted[row]};
    }
  }
}

// From-times of the newest deletes of keys that Current does not hold.
Status ApplyPass::LocateInPrior(const FileScanTask& task) {
  std::vector<std::string> columns =
      Columns({Name(HeaderColumn::kKeyHash), Name(HeaderColumn::kOperation),
               Name(HeaderColumn::kFromTimestamp)});
  columns.insert(columns.end(), request_.spec.key.begin(), request_.spec.key.end());
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<FileRows> rows,
                        FileRows::Open(deps_.store, {.file_path = task.file.file_path,
                                                     .schema = &request_.metadata.CurrentSchema(),
                                                     .columns = columns}));
  while (true) {
    TARN_ASSIGN_OR_RETURN(const FileRowsBatch batch, rows->Next());
    if (batch.rows == nullptr) {
      return Status::Ok();
    }
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<const KeyBatch> key_batch, KeysOf(*batch.rows));
    const Times from(*batch.rows, HeaderColumn::kFromTimestamp);
    for (int64_t row = 0; row < batch.rows->num_rows(); ++row) {
      const uint32_t slot = index_.Find(*key_batch, row);
      if (slot != kNoSlot && !bases_[slot].found) {
        std::optional<int64_t>& deleted = starts_[slot].deleted_from_micros;
        deleted = std::max(deleted.value_or(INT64_MIN), from[row]);
      }
    }
  }
}

Status ApplyPass::FindBases(const DeletedByFile& deleted) {
  starts_.resize(index_.size());
  bases_.resize(index_.size());
  const iceberg::Schema& schema = request_.metadata.CurrentSchema();
  TARN_ASSIGN_OR_RETURN(const iceberg::Expression filter, range_.Filter());
  for (size_t file = 0; file < request_.files.current.size(); ++file) {
    if (iceberg::MayMatchFile(filter, schema, request_.files.current[file].file)) {
      TARN_RETURN_IF_ERROR(LocateInCurrent(file, deleted[file]));
    }
  }
  if (!request_.spec.fold.history || request_.spec.fold.soft_delete) {
    return Status::Ok();
  }
  for (const FileScanTask& task : request_.files.prior) {
    if (HoldsDeletesOnly(task.file) && iceberg::MayMatchFile(filter, schema, task.file)) {
      TARN_RETURN_IF_ERROR(LocateInPrior(task));
    }
  }
  return Status::Ok();
}

// Notes which delete shows the values of which version.
void ApplyPass::ChooseSuccessors() {
  delete_after_.assign(changes_.size(), kNoChange);
  delete_of_base_.assign(starts_.size(), kNoChange);
  for (uint32_t i = 0; i < changes_.size(); ++i) {
    const FoldedChange& change = folded_.changes[i];
    if (change.operation != Operation::kDelete ||
        DestinationOf(change, request_.spec.fold) == Destination::kNowhere) {
      continue;
    }
    if (change.values_row == kValuesOfBase) {
      delete_of_base_[changes_[i].slot] = i;
    } else {
      delete_after_[change.values_row] = i;
    }
  }
}

Status ApplyPass::Fold(const DeletedByFile& deleted) {
  TARN_RETURN_IF_ERROR(ReadChanges());
  TARN_RETURN_IF_ERROR(FindBases(deleted));
  folded_ = FoldChanges(changes_, starts_, request_.spec.fold);
  ChooseSuccessors();
  return Status::Ok();
}

// How an operation is written. Loads stay loads.
char ApplyPass::CodeOf(Operation operation) const {
  const char code = static_cast<char>(operation);
  const bool reload = request_.origin == ChangeOrigin::kReload && operation != Operation::kLoad;
  return reload ? static_cast<char>(code - 'A' + 'a') : code;
}

void ApplyPass::AddVersion(uint32_t change, int64_t source_row, Batch& batch) const {
  const FoldedChange& folded = folded_.changes[change];
  const int64_t now = ToMicros(request_.now);
  VersionRow row{.source_row = source_row,
                 .operation = CodeOf(folded.operation),
                 .from_micros = folded.from_micros};
  const bool deleted = folded.operation == Operation::kDelete;
  switch (DestinationOf(folded, request_.spec.fold)) {
    case Destination::kNowhere:
      return;
    case Destination::kCurrent:
      row.inserted_micros = folded.inserted_micros;
      row.modified_micros = now;
      (deleted ? batch.current_deleted : batch.current).push_back(row);
      return;
    case Destination::kPrior:
      row.to_micros = folded.to_micros;
      row.was_current_from_micros = now;
      row.was_current_to_micros = now;
      (deleted ? batch.prior_deleted : batch.prior).push_back(row);
      return;
  }
}

Status ApplyPass::WriteBatch(const arrow::RecordBatch& values, const Batch& batch,
                             const ApplyWriters& writers, ApplyCounts& counts) {
  counts.current_rows += static_cast<int64_t>(batch.current.size() + batch.current_deleted.size());
  counts.prior_rows += static_cast<int64_t>(batch.prior.size() + batch.prior_deleted.size());
  if (!batch.current.empty()) {
    TARN_ASSIGN_OR_RETURN(const auto rows, MakeCurrentRows(values, batch.current));
    TARN_RETURN_IF_ERROR(writers.current.Write(rows));
  }
  if (!batch.current_deleted.empty()) {
    TARN_ASSIGN_OR_RETURN(const auto rows, MakeCurrentRows(values, batch.current_deleted));
    TARN_RETURN_IF_ERROR(writers.current_deleted.Write(rows));
  }
  if (!batch.prior.empty()) {
    TARN_ASSIGN_OR_RETURN(const auto rows, MakePriorRows(values, batch.prior));
    TARN_RETURN_IF_ERROR(writers.prior.Write(rows));
  }
  if (!batch.prior_deleted.empty()) {
    TARN_ASSIGN_OR_RETURN(const auto rows, MakePriorRows(values, batch.prior_deleted));
    TARN_RETURN_IF_ERROR(writers.prior_deleted.Write(rows));
  }
  return Status::Ok();
}

// The versions whose values are those of `rows`, the change rows from `first_row`.
Status ApplyPass::EmitValues(const arrow::RecordBatch& rows, int64_t first_row, uint32_t& change,
                             const ApplyWriters& writers, ApplyCounts& counts) {
  Batch batch;
  const int64_t end = first_row + rows.num_rows();
  for (; change < changes_.size() && ordinals_[change] < end; ++change) {
    const int64_t source_row = ordinals_[change] - first_row;
    if (folded_.changes[change].operation != Operation::kDelete) {
      AddVersion(change, source_row, batch);
    }
    if (delete_after_[change] != kNoChange) {
      AddVersion(delete_after_[change], source_row, batch);
    }
  }
  return WriteBatch(rows, batch, writers, counts);
}

Status ApplyPass::EmitChanges(const ApplyWriters& writers, ApplyCounts& counts) {
  int64_t first_row = 0;
  uint32_t change = 0;
  if (holds_values_) {
    for (std::shared_ptr<arrow::RecordBatch>& rows : held_) {
      TARN_RETURN_IF_ERROR(EmitValues(*rows, first_row, change, writers, counts));
      first_row += rows->num_rows();
      rows.reset();
    }
    return Status::Ok();
  }
  std::vector<std::string> columns = Columns({Name(HeaderColumn::kKeyHash)});
  const std::vector<std::string> users = UserColumnNames(request_.metadata.CurrentSchema());
  columns.insert(columns.end(), users.begin(), users.end());
  for (const FileScanTask& task : request_.files.changes) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<FileRows> rows,
                          FileRows::Open(deps_.store, {.file_path = task.file.file_path,
                                                       .schema = &request_.metadata.CurrentSchema(),
                                                       .columns = columns}));
    while (true) {
      TARN_ASSIGN_OR_RETURN(const FileRowsBatch values, rows->Next());
      if (values.rows == nullptr) {
        break;
      }
      TARN_RETURN_IF_ERROR(EmitValues(*values.rows, first_row, change, writers, counts));
      first_row += values.rows->num_rows();
    }
  }
  return Status::Ok();
}

Status ApplyPass::EmitBasesOf(size_t file, const std::vector<uint32_t>& slots,
                              const ApplyWriters& writers, ApplyCounts& counts) {
  std::vector<std::string> columns =
      Columns({Name(HeaderColumn::kKeyHash), Name(HeaderColumn::kOperation)});
  const std::vector<std::string> users = UserColumnNames(request_.metadata.CurrentSchema());
  columns.insert(columns.end(), users.begin(), users.end());
  TARN_ASSIGN_OR_RETURN(
      const std::unique_ptr<FileRows> rows,
      FileRows::Open(deps_.store, {.file_path = request_.files.current[file].file.file_path,
                                   .schema = &request_.metadata.CurrentSchema(),
                                   .columns = columns}));
  size_t next = 0;
  while (next < slots.size()) {
    TARN_ASSIGN_OR_RETURN(const FileRowsBatch values, rows->Next());
    if (values.rows == nullptr) {
      break;
    }
    const auto& operations =
        static_cast<const arrow::StringArray&>(Column(*values.rows, HeaderColumn::kOperation));
    Batch batch;
    const int64_t end = values.first_position + values.rows->num_rows();
    for (; next < slots.size() && bases_[slots[next]].position < end; ++next) {
      const uint32_t slot = slots[next];
      const LocatedBase& base = bases_[slot];
      const int64_t source_row = base.position - values.first_position;
      if (request_.spec.fold.history) {
        const char operation = OperationAt(operations, source_row);
        (IsDeleted(operation) ? batch.prior_deleted : batch.prior)
            .push_back({.source_row = source_row,
                        .operation = operation,
                        .from_micros = starts_[slot].base->from_micros,
                        .to_micros = folded_.slots[slot].base_to_micros,
                        .was_current_from_micros = base.modified_micros,
                        .was_current_to_micros = ToMicros(request_.now)});
      }
      if (delete_of_base_[slot] != kNoChange) {
        AddVersion(delete_of_base_[slot], source_row, batch);
      }
    }
    TARN_RETURN_IF_ERROR(WriteBatch(*values.rows, batch, writers, counts));
  }
  return Status::Ok();
}

Status ApplyPass::EmitBases(const ApplyWriters& writers, ApplyCounts& counts) {
  std::map<uint32_t, std::vector<uint32_t>> slots_by_file;
  for (uint32_t slot = 0; slot < bases_.size(); ++slot) {
    const bool needed = request_.spec.fold.history || delete_of_base_[slot] != kNoChange;
    if (bases_[slot].found && folded_.slots[slot].touched && needed) {
      slots_by_file[bases_[slot].file].push_back(slot);
    }
  }
  for (auto& [file, slots] : slots_by_file) {
    std::sort(slots.begin(), slots.end(),
              [this](uint32_t a, uint32_t b) { return bases_[a].position < bases_[b].position; });
    TARN_RETURN_IF_ERROR(EmitBasesOf(file, slots, writers, counts));
  }
  return Status::Ok();
}

Status ApplyPass::Emit(const ApplyWriters& writers, DeletedByFile& dead, ApplyCounts& counts) {
  TARN_RETURN_IF_ERROR(EmitChanges(writers, counts));
  TARN_RETURN_IF_ERROR(EmitBases(writers, counts));
  for (uint32_t slot = 0; slot < bases_.size(); ++slot) {
    if (bases_[slot].found && folded_.slots[slot].touched) {
      dead[bases_[slot].file].push_back(bases_[slot].position);
    }
  }
  counts.changes += static_cast<int64_t>(changes_.size());
  counts.noop_deletes += folded_.noop_delete_count;
  return Status::Ok();
}

}  // namespace tarn::lakehouse
