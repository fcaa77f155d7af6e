#include "tarn/landing/landing_rows.h"

#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/json_text.h"

namespace tarn::landing {

namespace {

using format::JsonMember;
using format::JsonRecord;
using format::JsonValue;
using source::files::FilePosition;

// A file whose rows are among those not handed over.
struct FileSpan {
  FilePosition position;
  int64_t row_count = 0;
};

// What a Debezium record adds to its row.
struct CdcHeader {
  std::string table;
  char operation = 0;
  std::string position;
  std::optional<int64_t> commit_time_micros;
  std::string transaction;
  std::string before;  // JSON text; empty = NULL.
};

bool SameJson(JsonValue a, JsonValue b) { return a && b && a.text() == b.text(); }

// {"name": value, …} of the members of `image` that `key` has too.
std::string KeyMembers(JsonValue image, JsonValue key) {
  std::string text;
  for (const JsonMember member : key.members()) {
    const JsonValue value = image.Find(member.name);
    if (!value) {
      continue;
    }
    text += text.empty() ? "{" : ",";
    text += JsonString(member.name);
    text += ":";
    text += value.text();
  }
  return text.empty() ? text : text + "}";
}

// True when a member of the key differs between the images.
bool KeyChanged(JsonValue before, JsonValue after, JsonValue key) {
  for (const JsonMember member : key.members()) {
    const JsonValue old = before.Find(member.name);
    const JsonValue now = after.Find(member.name);
    if (old && now && !SameJson(old, now)) {
      return true;
    }
  }
  return false;
}

std::string BeforeText(const DebeziumEvent& event, CdcBefore keep) {
  const bool update = event.operation == 'U' && event.before && event.before.is_object();
  if (!update || keep == CdcBefore::kOff) {
    return {};
  }
  const bool key_known = event.key && event.key.is_object();
  if (keep == CdcBefore::kFull || !key_known) {
    return std::string(event.before.text());
  }
  // An update that changes the key is keyed by the new one; compare under either name.
  return event.after.is_object() && KeyChanged(event.before, event.after, event.key)
             ? KeyMembers(event.before, event.key)
             : std::string();
}

}  // namespace

struct LandingRows::State {
  explicit State(const LandingSpec& landing_spec)
      : spec(landing_spec),
        splitter({.limits = {.depth = 512, .max_record_bytes = landing_spec.record_bytes_max}}) {}

  const LandingSpec& spec;
  format::JsonSplitter splitter;
  std::unique_ptr<format::JsonColumns> columns;
  DebeziumEnvelope envelope;
  std::vector<FileSpan> files;                       // Of the rows not handed over, in order.
  std::vector<int64_t> file_rows;                    // hdr__file_row of each of them.
  std::vector<CdcHeader> cdc;                        // With an envelope: of each of them.
  std::vector<std::pair<int64_t, int64_t>> dropped;  // Ranges of them that do not count.
  std::vector<DeadLetter> letters;
  size_t letters_before_file = 0;
  int64_t first_row = 0;      // hdr__file_row of the splitter's row 0.
  int64_t handed_over = 0;    // Rows of the file that TakeRows gave away.
  int64_t pending_start = 0;  // Index of the file's first row not handed over.
  LandingCounts counts;
  LandingCounts counts_before_file;

  Status TakeRecords();
  Status TakeRecord(const JsonRecord& record);
  Status TakeEvent(const JsonRecord& record);
  Status Reject(const JsonRecord& record, std::string_view code, std::string_view text);
  void AddRow(uint64_t row);
  bool IsWanted(std::string_view table) const;
};

void LandingRows::State::AddRow(uint64_t row) {
  ++files.back().row_count;
  file_rows.push_back(first_row + static_cast<int64_t>(row));
  ++counts.rows;
}

Status LandingRows::State::Reject(const JsonRecord& record, std::string_view code,
                                  std::string_view text) {
  const FilePosition& file = files.back().position;
  const int64_t row = first_row + static_cast<int64_t>(record.row);
  const std::string reason =
      fmt::format("{} (byte {} of the record)", text, record.failure.position_bytes);
  switch (spec.on_bad_record) {
    case OnBadRecord::kStop:
      return Status::FailedPrecondition(fmt::format("{}: row {}, byte {}: {}: {}", file.name, row,
                                                    record.offset_bytes, code, reason));
    case OnBadRecord::kSkip:
      ++counts.skipped;
      return Status::Ok();
    case OnBadRecord::kReject:
      break;
  }
  ++counts.rejected;
  letters.push_back({.raw = std::string(record.text),
                     .source = file.name,
                     .position = std::to_string(row),
                     .error_code = std::string(code),
                     .error_text = reason,
                     .rejected_by = spec.name});
  return Status::Ok();
}

bool LandingRows::State::IsWanted(std::string_view table) const {
  return spec.tables.empty() ||
         std::any_of(spec.tables.begin(), spec.tables.end(),
                     [&](const std::string& pattern) { return MatchesPattern(pattern, table); });
}

Status LandingRows::State::TakeEvent(const JsonRecord& record) {
  DebeziumEvent event;
  const format::RecordFailure opened = envelope.Open(record.value, event);
  if (!opened.ok()) {
    return Reject(record, format::RecordErrorName(opened.code), opened.text);
  }
  if (event.kind != DebeziumKind::kChange || !IsWanted(event.table)) {
    ++counts.filtered;
    return Status::Ok();
  }
  const JsonValue row = event.row();
  if (!row || !row.is_object()) {
    // A truncate has no row; it is landed as one without values.
    if (event.operation != 'T') {
      return Reject(record, "bad_envelope", "the event has no row image");
    }
    ++counts.filtered;
    return Status::Ok();
  }
  const format::RecordFailure appended =
      columns->Append(row, {.schema = event.row_schema, .unavailable = event.unavailable});
  if (!appended.ok()) {
    return Reject(record, format::RecordErrorName(appended.code), appended.text);
  }
  cdc.push_back({.table = std::string(event.table),
                 .operation = event.operation,
                 .position = std::string(event.position),
                 .commit_time_micros = event.commit_time_micros,
                 .transaction = std::string(event.transaction),
                 .before = BeforeText(event, spec.cdc_before)});
  AddRow(record.row);
  return Status::Ok();
}

Status LandingRows::State::TakeRecord(const JsonRecord& record) {
  if (!record.failure.ok()) {
    const bool null_event =
        spec.envelope == Envelope::kDebezium && record.value && record.value.is_null();
    if (null_event) {
      ++counts.filtered;  // A tombstone behind a delete.
      return Status::Ok();
    }
    return Reject(record, format::RecordErrorName(record.failure.code), record.failure.text);
  }
  if (spec.envelope == Envelope::kDebezium) {
    return TakeEvent(record);
  }
  const format::RecordFailure appended = columns->Append(record.value);
  if (!appended.ok()) {
    return Reject(record, format::RecordErrorName(appended.code), appended.text);
  }
  AddRow(record.row);
  return Status::Ok();
}

Status LandingRows::State::TakeRecords() {
  JsonRecord record;
  while (splitter.Next(record)) {
    TARN_RETURN_IF_ERROR(TakeRecord(record));
  }
  return Status::Ok();
}

LandingRows::LandingRows(std::unique_ptr<State> state) : state_(std::move(state)) {}
LandingRows::~LandingRows() = default;

Result<std::unique_ptr<LandingRows>> LandingRows::Make(const LandingSpec& spec,
                                                       format::ColumnSet columns) {
  auto state = std::make_unique<State>(spec);
  TARN_ASSIGN_OR_RETURN(state->columns,
                        format::JsonColumns::Make(spec.columns, std::move(columns)));
  return std::unique_ptr<LandingRows>(new LandingRows(std::move(state)));
}

void LandingRows::StartFile(const FilePosition& position) {
  State& state = *state_;
  state.splitter.Reset();
  state.files.push_back({.position = position, .row_count = 0});
  state.first_row = position.rows_done;
  state.handed_over = 0;
  state.pending_start = static_cast<int64_t>(state.file_rows.size());
  state.letters_before_file = state.letters.size();
  state.counts_before_file = state.counts;
}

Status LandingRows::Feed(std::string_view bytes) {
  state_->counts.bytes += static_cast<int64_t>(bytes.size());
  state_->splitter.Feed(bytes);
  return state_->TakeRecords();
}

Status LandingRows::FinishFile() {
  state_->splitter.Finish();
  TARN_RETURN_IF_ERROR(state_->TakeRecords());
  ++state_->counts.files;
  return Status::Ok();
}

int64_t LandingRows::DropFile() {
  State& state = *state_;
  state.splitter.Reset();
  state.letters.resize(std::min(state.letters.size(), state.letters_before_file));
  state.counts = state.counts_before_file;
  const auto end = static_cast<int64_t>(state.file_rows.size());
  if (end > state.pending_start) {
    state.dropped.emplace_back(state.pending_start, end);
  }
  state.counts.rows += state.handed_over;
  return state.handed_over;
}

void LandingRows::RejectFile(const FilePosition& position, std::string_view code,
                             std::string_view text) {
  ++state_->counts.rejected;
  state_->letters.push_back({.raw = {},
                             .source = position.name,
                             .position = {},
                             .error_code = std::string(code),
                             .error_text = std::string(text),
                             .rejected_by = state_->spec.name});
}

int64_t LandingRows::row_count() const { return state_->columns->row_count(); }
int64_t LandingRows::size_bytes() const {
  return state_->columns->size_bytes() +
         static_cast<int64_t>(state_->file_rows.size() * 64 + state_->cdc.size() * 128);
}
format::ColumnSet LandingRows::column_set() const { return state_->columns->column_set(); }
const LandingCounts& LandingRows::counts() const { return state_->counts; }
const format::JsonCounters& LandingRows::json_counters() const {
  return state_->columns->counters();
}

std::vector<DeadLetter> LandingRows::TakeDeadLetters() {
  state_->letters_before_file = 0;
  return std::exchange(state_->letters, {});
}

namespace {

struct Columns {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  void Add(std::string name, std::shared_ptr<arrow::Array> array) {
    fields.push_back(arrow::field(std::move(name), array->type()));
    arrays.push_back(std::move(array));
  }
};

std::shared_ptr<arrow::DataType> InstantType() {
  return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
}

Status AddFileHeaders(const std::vector<FileSpan>& files, const std::vector<int64_t>& file_rows,
                      Timestamp landed, Columns& columns) {
  const auto count = static_cast<int64_t>(file_rows.size());
  arrow::StringBuilder names;
  arrow::Int64Builder sizes;
  arrow::Int64Builder rows;
  arrow::TimestampBuilder events(InstantType(), arrow::default_memory_pool());
  int64_t characters = 0;
  for (const FileSpan& file : files) {
    characters += file.row_count * static_cast<int64_t>(file.position.name.size());
  }
  TARN_RETURN_IF_ERROR(names.Reserve(count));
  TARN_RETURN_IF_ERROR(names.ReserveData(characters));
  TARN_RETURN_IF_ERROR(sizes.Reserve(count));
  TARN_RETURN_IF_ERROR(events.Reserve(count));
  for (const FileSpan& file : files) {
    for (int64_t row = 0; row < file.row_count; ++row) {
      names.UnsafeAppend(file.position.name);
      sizes.UnsafeAppend(static_cast<int64_t>(file.position.version.size_bytes));
      events.UnsafeAppend(ToMicros(file.position.version.modified));
    }
  }
  TARN_RETURN_IF_ERROR(rows.AppendValues(file_rows));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> name_array, names.Finish());
  columns.Add("hdr__file_name", std::move(name_array));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> size_array, sizes.Finish());
  columns.Add("hdr__file_size", std::move(size_array));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> row_array, rows.Finish());
  columns.Add("hdr__file_row", std::move(row_array));
  TARN_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::Array> landed_array,
      arrow::MakeArrayFromScalar(arrow::TimestampScalar(ToMicros(landed), InstantType()), count));
  columns.Add("hdr__landed_timestamp", std::move(landed_array));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> event_array, events.Finish());
  columns.Add("hdr__event_timestamp", std::move(event_array));
  return Status::Ok();
}

using CdcText = std::string CdcHeader::*;

Status AddCdcText(const std::vector<CdcHeader>& cdc, const char* name, CdcText member,
                  Columns& columns) {
  arrow::StringBuilder builder;
  for (const CdcHeader& header : cdc) {
    const std::string& text = header.*member;
    TARN_RETURN_IF_ERROR(text.empty() ? builder.AppendNull() : builder.Append(text));
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, builder.Finish());
  columns.Add(name, std::move(array));
  return Status::Ok();
}

// CDC columns; the event time of a change is its commit time in the source.
Status AddCdcHeaders(const std::vector<CdcHeader>& cdc, Columns& columns) {
  arrow::StringBuilder operations;
  arrow::TimestampBuilder times(InstantType(), arrow::default_memory_pool());
  for (const CdcHeader& header : cdc) {
    TARN_RETURN_IF_ERROR(operations.Append(std::string_view(&header.operation, 1)));
    TARN_RETURN_IF_ERROR(header.commit_time_micros ? times.Append(*header.commit_time_micros)
                                                   : times.AppendNull());
  }
  TARN_RETURN_IF_ERROR(AddCdcText(cdc, "hdr__cdc_table", &CdcHeader::table, columns));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> operation_array, operations.Finish());
  columns.Add("hdr__cdc_operation", std::move(operation_array));
  TARN_RETURN_IF_ERROR(AddCdcText(cdc, "hdr__cdc_position", &CdcHeader::position, columns));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> time_array, times.Finish());
  columns.Add("hdr__cdc_timestamp", time_array);
  TARN_RETURN_IF_ERROR(AddCdcText(cdc, "hdr__cdc_transaction", &CdcHeader::transaction, columns));
  TARN_RETURN_IF_ERROR(AddCdcText(cdc, "hdr__cdc_before", &CdcHeader::before, columns));
  for (size_t i = 0; i < columns.fields.size(); ++i) {
    if (columns.fields[i]->name() == "hdr__event_timestamp" && time_array->null_count() == 0) {
      columns.arrays[i] = time_array;
    }
  }
  return Status::Ok();
}

// The batch without the ranges of rows that were taken back.
Result<std::shared_ptr<arrow::RecordBatch>> WithoutRanges(
    const std::shared_ptr<arrow::RecordBatch>& batch,
    const std::vector<std::pair<int64_t, int64_t>>& dropped) {
  arrow::RecordBatchVector kept;
  int64_t start = 0;
  for (const auto& [first, end] : dropped) {
    if (first > start) {
      kept.push_back(batch->Slice(start, first - start));
    }
    start = end;
  }
  if (start < batch->num_rows()) {
    kept.push_back(batch->Slice(start));
  }
  if (kept.empty()) {
    return std::shared_ptr<arrow::RecordBatch>();
  }
  if (kept.size() == 1) {
    return kept.front();
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> joined,
                        arrow::ConcatenateRecordBatches(kept));
  return joined;
}

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> LandingRows::TakeRows(Timestamp landed) {
  State& state = *state_;
  if (state.columns->row_count() == 0) {
    return std::shared_ptr<arrow::RecordBatch>();
  }
  TARN_ASSIGN_OR_RETURN(const format::JsonBatch batch, state.columns->Finish());
  Columns columns;
  TARN_RETURN_IF_ERROR(AddFileHeaders(state.files, state.file_rows, landed, columns));
  if (state.spec.envelope == Envelope::kDebezium) {
    TARN_RETURN_IF_ERROR(AddCdcHeaders(state.cdc, columns));
  }
  std::shared_ptr<arrow::Array> absent = batch.absent;
  if (absent == nullptr) {
    TARN_ASSIGN_OR_RETURN(absent, arrow::MakeArrayOfNull(arrow::utf8(), batch.batch->num_rows()));
  }
  columns.Add("hdr__absent", std::move(absent));
  for (int i = 0; i < batch.batch->num_columns(); ++i) {
    columns.fields.push_back(batch.batch->schema()->field(i));
    columns.arrays.push_back(batch.batch->column(i));
  }
  const auto rows = arrow::RecordBatch::Make(arrow::schema(std::move(columns.fields)),
                                             batch.batch->num_rows(), std::move(columns.arrays));
  const std::vector<std::pair<int64_t, int64_t>> dropped = std::exchange(state.dropped, {});
  state.handed_over += static_cast<int64_t>(state.file_rows.size()) - state.pending_start;
  state.pending_start = 0;
  state.file_rows.clear();
  state.cdc.clear();
  if (!state.files.empty()) {
    state.files.erase(state.files.begin(), state.files.end() - 1);
    state.files.back().row_count = 0;
  }
  return WithoutRanges(rows, dropped);
}

}  // namespace tarn::landing
