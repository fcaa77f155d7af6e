#include "tarn/landing/landing_rows.h"

#include <algorithm>
#include <cstring>

#include <arrow/api.h>
#include <fmt/format.h>

#include "tarn/base/arrow_status.h"
#include "tarn/base/check.h"
#include "tarn/landing/before_image.h"
#include "tarn/landing/cdc_columns.h"
#include "tarn/landing/message_key.h"

namespace tarn::landing {

namespace {

using format::JsonRecord;
using format::JsonValue;
using source::files::FilePosition;

// Rows are handed over in pieces of about this many.
constexpr int64_t kPieceRows = 64 * 1024;
constexpr int64_t kPieceBytes = 48LL << 20;
// And dead letters.
constexpr int64_t kPieceLetterBytes = 8LL << 20;
constexpr std::string_view kTombstoneCode = "tombstone";

// A file whose rows are among those not handed over.
struct FileSpan {
  FilePosition position;
  int64_t row_count = 0;
};

}  // namespace

struct LandingRows::State {
  explicit State(const LandingSpec& landing_spec)
      : spec(landing_spec),
        splitter({.limits = {.depth = 512, .max_record_bytes = landing_spec.record_bytes_max}}),
        value_tape({.depth = 512, .max_record_bytes = landing_spec.record_bytes_max}),
        before(landing_spec),
        message_key(landing_spec.kafka ? landing_spec.kafka->key_columns : KeyColumns{}) {
    TARN_CHECK(empty_object.Parse("{}").ok());
  }

  const LandingSpec& spec;
  format::JsonSplitter splitter;
  format::JsonTape value_tape;  // Of a message.
  std::unique_ptr<format::JsonColumns> columns;
  DebeziumEnvelope envelope;
  DebeziumEvent event;
  BeforeImage before;
  SourceKeys keys;
  format::JsonTape empty_object;   // The row of a truncate.
  std::vector<FileSpan> files;     // Of the rows not handed over, in order.
  std::vector<int64_t> file_rows;  // hdr__file_row of each of them.
  CdcColumns cdc;                  // With an envelope: of each of them.
  MessageColumns messages;         // With Kafka: of each of them.
  MessageKey message_key;
  const LandedMessage* message = nullptr;            // The one that is being taken.
  std::vector<std::pair<int64_t, int64_t>> dropped;  // Ranges of them that do not count.
  std::vector<DeadLetter> letters;
  size_t letters_before_file = 0;
  int64_t letter_bytes = 0;         // Of their raw records, at least.
  int64_t letters_handed_over = 0;  // Of the file, by TakeDeadLetters.
  int64_t first_row = 0;            // hdr__file_row of the splitter's row 0.
  int64_t next_row = 0;             // hdr__file_row of the record that comes next.
  int64_t handed_over = 0;          // Rows of the file that TakeRows gave away.
  int64_t pending_start = 0;        // Index of the file's first row not handed over.
  LandingCounts counts;
  LandingCounts counts_before_file;

  Status TakeMessage();
  Status TakeTombstone();
  Status TakeRecords();
  Status TakeRecord(const JsonRecord& record);
  Status TakeObject(const JsonRecord& record);
  Status TakeEvent(const JsonRecord& record);
  Status Reject(const JsonRecord& record, std::string_view code, std::string_view text);
  void AddRow(uint64_t row);
  bool IsWanted(std::string_view table) const;
};

void LandingRows::State::AddRow(uint64_t row) {
  if (message != nullptr) {
    messages.Append(*message);
    ++counts.rows;
    return;
  }
  ++files.back().row_count;
  file_rows.push_back(first_row + static_cast<int64_t>(row));
  ++counts.rows;
}

Status LandingRows::State::Reject(const JsonRecord& record, std::string_view code,
                                  std::string_view text) {
  const std::string_view source = message != nullptr ? message->topic : files.back().position.name;
  const int64_t position =
      message != nullptr ? message->offset : first_row + static_cast<int64_t>(record.row);
  std::string reason =
      fmt::format("{} (byte {} of the record)", text, record.failure.position_bytes);
  if (message != nullptr) {
    reason = fmt::format("partition {}: {}", message->partition, reason);
  }
  switch (spec.on_bad_record) {
    case OnBadRecord::kStop:
      return Status::FailedPrecondition(
          message != nullptr
              ? fmt::format("topic {}, offset {}: {}: {}", source, position, code, reason)
              : fmt::format("{}: row {}, byte {}: {}: {}", source, position, record.offset_bytes,
                            code, reason));
    case OnBadRecord::kSkip:
      ++counts.skipped;
      return Status::Ok();
    case OnBadRecord::kReject:
      break;
  }
  ++counts.rejected;
  letter_bytes += static_cast<int64_t>(sizeof(DeadLetter) + record.text.size());
  letters.push_back({.raw = std::string(record.text),
                     .source = std::string(source),
                     .position = std::to_string(position),
                     .error_code = std::string(code),
                     .error_text = std::move(reason),
                     .rejected_by = spec.name});
  return Status::Ok();
}

bool LandingRows::State::IsWanted(std::string_view table) const {
  return spec.tables.empty() ||
         std::any_of(spec.tables.begin(), spec.tables.end(),
                     [&](const std::string& pattern) { return MatchesPattern(pattern, table); });
}

Status LandingRows::State::TakeEvent(const JsonRecord& record) {
  format::RecordFailure opened;
  if (message != nullptr) {
    event.topic = message->topic;
    const JsonValue key = message->has_key ? message_key.Parse(message->key) : JsonValue();
    opened = envelope.Open(key, record.value, event);
  } else {
    opened = envelope.Open(record.value, event);
  }
  if (!opened.ok()) {
    return Reject(record, format::RecordErrorName(opened.code), opened.text);
  }
  if (event.kind != DebeziumKind::kChange || !IsWanted(event.table)) {
    ++counts.filtered;
    return Status::Ok();
  }
  JsonValue row = event.row();
  if (event.operation == 'T') {
    row = empty_object.root();  // A truncate is landed as a row without values.
    event.row_schema = nullptr;
    event.unavailable.clear();
    ++counts.truncates;
  }
  const format::RecordFailure appended =
      columns->Append(row, {.schema = event.row_schema, .unavailable = event.unavailable});
  if (!appended.ok()) {
    return Reject(record, format::RecordErrorName(appended.code), appended.text);
  }
  cdc.Append(event, before.TextOf(event));
  if (event.operation != 'T') {
    keys.Note(event.table, event.key);
  }
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
  return TakeObject(record);
}

Status LandingRows::State::TakeObject(const JsonRecord& record) {
  if (spec.envelope == Envelope::kDebezium) {
    return TakeEvent(record);
  }
  JsonValue object = record.value;
  if (message != nullptr && message_key.gives_columns()) {
    const format::RecordFailure joined = message_key.Join(*message, object);
    if (!joined.ok()) {
      return Reject(record, format::RecordErrorName(joined.code), joined.text);
    }
    object = message_key.joined();
  }
  const format::RecordFailure appended = columns->Append(object);
  if (!appended.ok()) {
    return Reject(record, format::RecordErrorName(appended.code), appended.text);
  }
  AddRow(record.row);
  return Status::Ok();
}

// A null value: behind a delete event it says nothing new; else it is a row of its key.
Status LandingRows::State::TakeTombstone() {
  if (spec.envelope == Envelope::kDebezium) {
    ++counts.filtered;
    return Status::Ok();
  }
  JsonRecord record;
  record.value = empty_object.root();
  if (spec.kafka->tombstone == Tombstone::kReject) {
    record.text = message->key;
    return Reject(record, kTombstoneCode, "the message has no value");
  }
  return TakeObject(record);
}

Status LandingRows::State::TakeMessage() {
  if (!message->has_value) {
    return TakeTombstone();
  }
  JsonRecord record;
  record.text = message->value;
  record.failure = value_tape.Parse(message->value);
  record.value = value_tape.root();
  if (record.failure.ok() && record.value.is_object()) [[likely]] {
    return TakeObject(record);
  }
  // Several records, or what is none.
  splitter.Reset();
  splitter.Feed(message->value);
  splitter.Finish();
  bool any = false;
  while (splitter.Next(record)) {
    any = true;
    TARN_RETURN_IF_ERROR(TakeRecord(record));
  }
  if (!any && record.failure.ok()) {
    return Status::Ok();  // An array without records.
  }
  return any ? Status::Ok()
             : Reject(record, format::RecordErrorName(record.failure.code), record.failure.text);
}

Status LandingRows::State::TakeRecords() {
  JsonRecord record;
  while (splitter.Next(record)) {
    next_row = first_row + static_cast<int64_t>(record.row) + 1;
    TARN_RETURN_IF_ERROR(TakeRecord(record));
  }
  return Status::Ok();
}

LandingRows::LandingRows(std::unique_ptr<State> state) : state_(std::move(state)) {}
LandingRows::~LandingRows() = default;

Result<std::unique_ptr<LandingRows>> LandingRows::Make(const LandingSpec& spec,
                                                       format::ColumnSet columns, SourceKeys keys) {
  auto state = std::make_unique<State>(spec);
  state->keys = std::move(keys);
  TARN_ASSIGN_OR_RETURN(state->columns,
                        format::JsonColumns::Make(spec.columns, std::move(columns)));
  return std::unique_ptr<LandingRows>(new LandingRows(std::move(state)));
}

Status LandingRows::TakeMessage(const LandedMessage& message) {
  state_->counts.bytes += static_cast<int64_t>(message.key.size() + message.value.size());
  state_->message = &message;
  const Status taken = state_->TakeMessage();
  state_->message = nullptr;
  return taken;
}

void LandingRows::StartFile(const FilePosition& position) {
  State& state = *state_;
  state.splitter.Reset(position.offset_bytes);
  state.files.push_back({.position = position, .row_count = 0});
  state.first_row = position.rows_done;
  state.next_row = position.rows_done;
  state.handed_over = 0;
  state.letters_handed_over = 0;
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

std::optional<source::files::FileResume> LandingRows::Resume() const {
  const std::optional<uint64_t> offset = state_->splitter.ResumeOffset();
  // Nothing leads into the middle of a compressed file: it is committed whole.
  if (!offset || state_->files.empty() || state_->files.back().position.compressed) {
    return std::nullopt;
  }
  const FilePosition& file = state_->files.back().position;
  return source::files::FileResume{.key = file.key,
                                   .version = file.version,
                                   .offset_bytes = *offset,
                                   .rows_done = state_->next_row};
}

void LandingRows::KeepFile() {
  state_->handed_over = 0;
  state_->letters_handed_over = 0;
  state_->counts_before_file = state_->counts;
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
  state.counts.rejected += state.letters_handed_over;
  return state.handed_over + state.letters_handed_over;
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
  return state_->columns->size_bytes() + static_cast<int64_t>(state_->file_rows.size() * 64) +
         state_->cdc.size_bytes() + state_->messages.size_bytes();
}
bool LandingRows::IsPieceFull() const {
  return row_count() >= kPieceRows || size_bytes() >= kPieceBytes ||
         state_->letter_bytes >= kPieceLetterBytes;
}
format::ColumnSet LandingRows::column_set() const { return state_->columns->column_set(); }
const SourceKeys& LandingRows::source_keys() const { return state_->keys; }
const LandingCounts& LandingRows::counts() const { return state_->counts; }
const format::JsonCounters& LandingRows::json_counters() const {
  return state_->columns->counters();
}

std::vector<DeadLetter> LandingRows::TakeDeadLetters() {
  state_->letters_handed_over +=
      static_cast<int64_t>(state_->letters.size() - state_->letters_before_file);
  state_->letters_before_file = 0;
  state_->letter_bytes = 0;
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

// Fills `out` with `count` copies of `text`.
void Repeat(std::string_view text, int64_t count, uint8_t* out) {
  if (count == 0 || text.empty()) {
    return;
  }
  const size_t size = text.size() * static_cast<size_t>(count);
  std::memcpy(out, text.data(), text.size());
  for (size_t done = text.size(); done < size;) {
    const size_t more = std::min(done, size - done);
    std::memcpy(out + done, out, more);
    done += more;
  }
}

Result<std::shared_ptr<arrow::Array>> FileNames(const std::vector<FileSpan>& files, int64_t count) {
  size_t characters = 0;
  for (const FileSpan& file : files) {
    characters += static_cast<size_t>(file.row_count) * file.position.name.size();
  }
  if (characters > INT32_MAX) {
    return Status(ErrorCode::kResourceExhausted, "the names of files take more than 2 GiB");
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> offsets,
                        arrow::AllocateBuffer((count + 1) * int64_t{sizeof(int32_t)}));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> bytes,
                        arrow::AllocateBuffer(static_cast<int64_t>(characters)));
  auto* offset = reinterpret_cast<int32_t*>(offsets->mutable_data());
  int32_t end = 0;
  *offset++ = end;
  for (const FileSpan& file : files) {
    Repeat(file.position.name, file.row_count, bytes->mutable_data() + end);
    for (int64_t row = 0; row < file.row_count; ++row) {
      end += static_cast<int32_t>(file.position.name.size());
      *offset++ = end;
    }
  }
  return std::shared_ptr<arrow::Array>(
      std::make_shared<arrow::StringArray>(count, std::move(offsets), std::move(bytes)));
}

// One number per row, the same for all rows of a file.
Result<std::shared_ptr<arrow::Array>> PerFile(const std::vector<FileSpan>& files, int64_t count,
                                              const std::shared_ptr<arrow::DataType>& type,
                                              int64_t (*value)(const FilePosition&)) {
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Buffer> values,
                        arrow::AllocateBuffer(count * int64_t{sizeof(int64_t)}));
  auto* out = reinterpret_cast<int64_t*>(values->mutable_data());
  for (const FileSpan& file : files) {
    out = std::fill_n(out, file.row_count, value(file.position));
  }
  return arrow::MakeArray(arrow::ArrayData::Make(type, count, {nullptr, std::move(values)}, 0));
}

Status AddFileHeaders(const std::vector<FileSpan>& files, const std::vector<int64_t>& file_rows,
                      Timestamp landed, Columns& columns) {
  const auto count = static_cast<int64_t>(file_rows.size());
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> names, FileNames(files, count));
  columns.Add("hdr__file_name", std::move(names));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> sizes,
                        PerFile(files, count, arrow::int64(), [](const FilePosition& position) {
                          return static_cast<int64_t>(position.version.size_bytes);
                        }));
  columns.Add("hdr__file_size", std::move(sizes));
  arrow::Int64Builder rows;
  TARN_RETURN_IF_ERROR(rows.AppendValues(file_rows));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> row_array, rows.Finish());
  columns.Add("hdr__file_row", std::move(row_array));
  TARN_ASSIGN_OR_RETURN(
      std::shared_ptr<arrow::Array> landed_array,
      arrow::MakeArrayFromScalar(arrow::TimestampScalar(ToMicros(landed), InstantType()), count));
  columns.Add("hdr__landed_timestamp", std::move(landed_array));
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> events,
                        PerFile(files, count, InstantType(), [](const FilePosition& position) {
                          return ToMicros(position.version.modified);
                        }));
  columns.Add("hdr__event_timestamp", std::move(events));
  return Status::Ok();
}

// The time of each change, that of its file or message where the source says none.
Result<std::shared_ptr<arrow::Array>> EventTimes(const std::shared_ptr<arrow::Array>& changes,
                                                 const std::shared_ptr<arrow::Array>& source) {
  if (changes->null_count() == 0) {
    return changes;
  }
  const auto& change_times = static_cast<const arrow::TimestampArray&>(*changes);
  const auto& source_times = static_cast<const arrow::TimestampArray&>(*source);
  arrow::TimestampBuilder builder(InstantType(), arrow::default_memory_pool());
  TARN_RETURN_IF_ERROR(builder.Reserve(changes->length()));
  for (int64_t i = 0; i < changes->length(); ++i) {
    const arrow::TimestampArray& times_of_row =
        change_times.IsNull(i) ? source_times : change_times;
    if (times_of_row.IsNull(i)) {
      builder.UnsafeAppendNull();  // A message without time.
    } else {
      builder.UnsafeAppend(times_of_row.Value(i));
    }
  }
  TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> times, builder.Finish());
  return times;
}

// CDC columns; the event time of a change (the last column so far) is its commit time in the
// source.
Status AddCdcHeaders(CdcColumns& cdc, Columns& columns) {
  const size_t event_time = columns.arrays.size() - 1;
  for (auto& [name, array] : cdc.Take()) {
    if (std::string_view(name) == "hdr__cdc_timestamp") {
      std::shared_ptr<arrow::Array>& events = columns.arrays[event_time];
      TARN_ASSIGN_OR_RETURN(events, EventTimes(array, events));
    }
    columns.Add(name, std::move(array));
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
  if (state.spec.kafka) {
    for (auto& [name, array] : state.messages.Take(landed)) {
      columns.Add(name, std::move(array));
    }
  } else {
    TARN_RETURN_IF_ERROR(AddFileHeaders(state.files, state.file_rows, landed, columns));
  }
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
  if (!state.files.empty()) {
    state.files.erase(state.files.begin(), state.files.end() - 1);
    state.files.back().row_count = 0;
  }
  return WithoutRanges(rows, dropped);
}

}  // namespace tarn::landing
