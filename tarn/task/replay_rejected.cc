#include "tarn/task/replay_rejected.h"

#include <charconv>
#include <optional>
#include <utility>

#include <arrow/api.h>
#include <arrow/compute/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/arrow_status.h"
#include "tarn/base/log.h"
#include "tarn/dataset/physical_name.h"
#include "tarn/format/parquet_reader.h"
#include "tarn/format/parquet_writer.h"
#include "tarn/landing/dead_letter_file.h"
#include "tarn/landing/landing_files.h"
#include "tarn/landing/landing_rows.h"
#include "tarn/landing/landing_schema.h"
#include "tarn/landing/landing_state.h"

namespace tarn::task {

namespace {

using dataset::StoredFile;
using landing::DeadLetterFile;
using landing::LandingFiles;
using landing::LandingRows;
using metastore::SqlTransaction;

// One batch of letters, column by column.
struct Letters {
  std::shared_ptr<arrow::RecordBatch> batch;
  const arrow::BinaryArray* raw = nullptr;
  const arrow::StringArray* source = nullptr;
  const arrow::StringArray* position = nullptr;
  const arrow::StringArray* code = nullptr;
  const arrow::StringArray* text = nullptr;
  const arrow::StringArray* by = nullptr;
  const arrow::TimestampArray* landed = nullptr;
};

Result<Letters> LettersOf(std::shared_ptr<arrow::RecordBatch> batch, const std::string& path) {
  Letters letters;
  const auto column = [&](const char* name, arrow::Type::type type) -> const arrow::Array* {
    const std::shared_ptr<arrow::Array> found = batch->GetColumnByName(name);
    return found != nullptr && found->type_id() == type ? found.get() : nullptr;
  };
  const auto text = [&](const char* name) {
    return static_cast<const arrow::StringArray*>(column(name, arrow::Type::STRING));
  };
  letters.raw = static_cast<const arrow::BinaryArray*>(column("raw", arrow::Type::BINARY));
  letters.source = text("source");
  letters.position = text("position");
  letters.code = text("error_code");
  letters.text = text("error_text");
  letters.by = text("rejected_by");
  letters.landed = static_cast<const arrow::TimestampArray*>(
      column("hdr__landed_timestamp", arrow::Type::TIMESTAMP));
  if (letters.raw == nullptr || letters.source == nullptr || letters.position == nullptr ||
      letters.code == nullptr || letters.text == nullptr || letters.by == nullptr ||
      letters.landed == nullptr) {
    return Status::FailedPrecondition(
        fmt::format("{} is no file of dead letters: take it out of the dataset", path));
  }
  letters.batch = std::move(batch);
  return letters;
}

int64_t NumberIn(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "partition 3: …", as LandingRows writes it.
int32_t PartitionIn(std::string_view text) {
  constexpr std::string_view kBefore = "partition ";
  return text.starts_with(kBefore) ? static_cast<int32_t>(NumberIn(text.substr(kBefore.size())))
                                   : 0;
}

// The objects of one commit.
struct WrittenFiles {
  std::vector<StoredFile> rows;
  std::optional<StoredFile> letters;  // Of records that gave rows and letters.
  StoredFile kept;                    // The letters that stay, under the path of the old file.
};

class Replay {
 public:
  Replay(const ControlDeps& deps, const ReplayRequest& request)
      : deps_(deps), catalog_(deps.catalog.deps()), request_(request), spec_(request.spec) {
    spec_.on_bad_record = landing::OnBadRecord::kReject;
  }

  Result<ReplayReport> Run() {
    TARN_RETURN_IF_ERROR(CheckSpec());
    const Result<source::files::SourceStore> place =
        spec_.kafka ? Status::NotFound("no files")
                    : source::files::OpenSourceStore(spec_.source_uri);
    if (place.ok()) {
      name_prefix_ = place->name_prefix;
    }
    dataset::ListOptions page;
    TARN_ASSIGN_OR_RETURN(const dataset::FileView view,
                          deps_.datasets.ResolveView(request_.datasets.rejected, {}));
    while (!view.absent()) {
      TARN_ASSIGN_OR_RETURN(
          const dataset::FilePage files,
          deps_.datasets.ListFiles(request_.datasets.rejected, {.end = view.end}, page));
      for (const dataset::File& file : files.files) {
        TARN_RETURN_IF_ERROR(ReplayFile(file));
      }
      if (!files.next_page_token) {
        break;
      }
      page.page_token = *files.next_page_token;
    }
    return report_;
  }

 private:
  Status CheckSpec() const {
    if (spec_.kafka && !spec_.kafka->key_columns.names.empty()) {
      return Status::FailedPrecondition(fmt::format(
          "landing {}: key_columns come from the keys of messages, which dead letters do not have: "
          "send the messages again",
          spec_.name));
    }
    if (spec_.kafka && !spec_.kafka->one_dataset) {
      return Status::Unimplemented(
          fmt::format("landing {}: dead letters of a task with one_dataset: false are not replayed "
                      "in this version",
                      spec_.name));
    }
    return Status::Ok();
  }

  // A record of this task that has bytes to read again.
  bool IsRecord(const Letters& letters, int64_t row) {
    if (letters.by->GetView(row) != spec_.name) {
      ++now_.of_transforms;
      return false;
    }
    if (letters.raw->GetView(row).empty() || letters.position->GetView(row).empty()) {
      ++now_.without_record;  // A whole file, or a message without value.
      return false;
    }
    return true;
  }

  Status TakeRecord(const Letters& letters, int64_t row) {
    if (spec_.kafka) {
      return rows_->TakeMessage({.topic = letters.source->GetView(row),
                                 .partition = PartitionIn(letters.text->GetView(row)),
                                 .has_value = true,
                                 .offset = NumberIn(letters.position->GetView(row)),
                                 .value = letters.raw->GetView(row)});
    }
    const std::string name(letters.source->GetView(row));
    source::files::FilePosition position{.key = name, .name = name};
    if (name.starts_with(name_prefix_)) {
      position.key = name.substr(name_prefix_.size());
    }
    position.version.modified = FromMicros(letters.landed->Value(row));
    if (const source::files::LedgerEntry* known = state_->ledger.Find(position.key)) {
      position.version = known->version;
    }
    position.rows_done = NumberIn(letters.position->GetView(row));
    rows_->StartFile(position);
    TARN_RETURN_IF_ERROR(rows_->Feed(letters.raw->GetView(row)));
    return rows_->FinishFile();
  }

  // True when the letter is dealt with; else it stays as it is.
  Result<bool> Replayed(const Letters& letters, int64_t row) {
    if (!IsRecord(letters, row)) {
      return false;
    }
    const landing::LandingCounts before = rows_->counts();
    TARN_RETURN_IF_ERROR(TakeRecord(letters, row));
    const landing::LandingCounts& after = rows_->counts();
    std::vector<landing::DeadLetter> again = rows_->TakeDeadLetters();
    now_.rows += after.rows - before.rows;
    const bool taken = after.rows > before.rows || after.filtered > before.filtered;
    if (!taken) {
      ++now_.rejected;
      return false;
    }
    for (landing::DeadLetter& letter : again) {
      TARN_RETURN_IF_ERROR(letters_->Add(std::move(letter)));
    }
    ++now_.replayed;
    if (rows_->IsPieceFull()) {
      TARN_RETURN_IF_ERROR(HandOver());
    }
    return true;
  }

  Status HandOver() {
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch,
                          rows_->TakeRows(started_));
    return batch == nullptr ? Status::Ok() : files_->Write(batch);
  }

  // Lands what the letters of a batch give, and keeps the others.
  Status ReplayBatch(const Letters& letters, format::ParquetWriter& kept) {
    arrow::BooleanBuilder stays;
    for (int64_t row = 0; row < letters.batch->num_rows(); ++row) {
      TARN_ASSIGN_OR_RETURN(const bool replayed, Replayed(letters, row));
      TARN_RETURN_IF_ERROR(stays.Append(!replayed));
    }
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::Array> mask, stays.Finish());
    TARN_ASSIGN_OR_RETURN(const arrow::Datum rest, arrow::compute::Filter(letters.batch, mask));
    return kept.Write(*rest.record_batch());
  }

  Status ReplayFile(const dataset::File& file) {
    now_ = {};
    started_ = catalog_.clock.Now();
    state_.reset();
    TARN_RETURN_IF_ERROR(deps_.database.Read([&](SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(state_, landing::ReadState(sql, request_.datasets.landing.ToString()));
      return Status::Ok();
    }));
    if (!state_) {
      return Status::FailedPrecondition(
          fmt::format("landing {} was never started: run it first", spec_.name));
    }
    TARN_ASSIGN_OR_RETURN(rows_, LandingRows::Make(spec_, state_->columns, state_->keys));
    files_ = std::make_unique<LandingFiles>(
        landing::LandingFilesOptions{.dataset = request_.datasets.landing}, catalog_.warehouse,
        catalog_.uuids);
    letters_ = std::make_unique<DeadLetterFile>(
        landing::DeadLetterFileOptions{.rejected = request_.datasets.rejected, .landed = started_},
        catalog_.warehouse, catalog_.uuids);
    WrittenFiles made;
    const Status done = ReplayInto(file, made);
    files_.reset();
    letters_.reset();
    if (!done.ok() && done.code() != ErrorCode::kCommitStateUnknown) {
      Remove(made);
    }
    TARN_RETURN_IF_ERROR(done.WithContext("dead letters " + file.path));
    report_ = Sum(report_, now_);
    return Status::Ok();
  }

  Status ReplayInto(const dataset::File& file, WrittenFiles& made) {
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::ParquetReader> reader,
                          format::ParquetReader::Open(catalog_.warehouse, file.location));
    TARN_RETURN_IF_ERROR(reader->Scan({.columns = {}, .row_groups = {}, .batch_rows = 1024}));
    const std::string location =
        dataset::PhysicalName(request_.datasets.rejected, catalog_.uuids.NextV7(), file.path);
    TARN_ASSIGN_OR_RETURN(
        std::unique_ptr<storage::ObjectWriter> object,
        catalog_.warehouse.OpenWriter(location, storage::WriteMode::kPutIfAbsent));
    TARN_ASSIGN_OR_RETURN(const std::unique_ptr<format::ParquetWriter> kept,
                          format::ParquetWriter::Open(std::move(object), reader->schema()));
    while (true) {
      TARN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::RecordBatch> batch, reader->Next());
      if (batch == nullptr) {
        break;
      }
      TARN_ASSIGN_OR_RETURN(const Letters letters, LettersOf(std::move(batch), file.path));
      TARN_RETURN_IF_ERROR(ReplayBatch(letters, *kept));
    }
    if (now_.replayed == 0) {
      files_->Abort();
      return Status::Ok();  // The writers leave nothing.
    }
    TARN_RETURN_IF_ERROR(HandOver());
    TARN_ASSIGN_OR_RETURN(made.rows, files_->Close());
    TARN_ASSIGN_OR_RETURN(made.letters, letters_->Close());
    TARN_ASSIGN_OR_RETURN(const format::FileStatistics statistics, kept->Close());
    made.kept.path = file.path;
    made.kept.location = location;
    made.kept.size_bytes = statistics.size_bytes;
    made.kept.row_count = statistics.row_count;
    return deps_.database.Write([&](SqlTransaction& sql) { return Commit(sql, file, made); });
  }

  Status Commit(SqlTransaction& sql, const dataset::File& file, const WrittenFiles& made) {
    TARN_RETURN_IF_ERROR(request_.on_commit(sql, now_));
    const landing::LandingDatasets& datasets = request_.datasets;
    TARN_ASSIGN_OR_RETURN(const dataset::FileView view,
                          deps_.datasets.ResolveView(sql, datasets.rejected, {}));
    TARN_ASSIGN_OR_RETURN(const dataset::File now, deps_.datasets.StatFile(sql, view, file.path));
    if (now.location != file.location) {
      return Status::Conflict(fmt::format("{} was changed meanwhile: try again", file.path));
    }
    if (!made.rows.empty()) {
      TARN_RETURN_IF_ERROR(CommitRows(sql, made.rows));
    }
    dataset::CommitFilesRequest rest;
    rest.dataset = datasets.rejected;
    rest.type = dataset::TransactionType::kUpdate;
    rest.files = {made.kept};
    rest.commit.by = datasets.by;
    rest.commit.record_json =
        nlohmann::json{{"task", spec_.name}, {"replayed", now_.replayed}}.dump();
    TARN_RETURN_IF_ERROR(deps_.datasets.CommitFiles(sql, rest));
    return made.letters
               ? landing::CommitDeadLetters(
                     sql, deps_.datasets,
                     {.rejected = datasets.rejected, .file = *made.letters, .by = datasets.by})
               : Status::Ok();
  }

  // The transaction has no positions: where the task reads on stays as it is.
  Status CommitRows(SqlTransaction& sql, const std::vector<StoredFile>& files) {
    const landing::LandingDatasets& datasets = request_.datasets;
    dataset::CommitFilesRequest landed;
    landed.dataset = datasets.landing;
    landed.files = files;
    landed.commit.by = datasets.by;
    landed.commit.record_json = nlohmann::json{
        {"task", spec_.name},
        {"rows", now_.rows},
        {"replayed", now_.replayed}}.dump();
    TARN_ASSIGN_OR_RETURN(const dataset::Transaction transaction,
                          deps_.datasets.CommitFiles(sql, landed));
    // The file may declare other types than when the newest transaction landed.
    TARN_RETURN_IF_ERROR(deps_.datasets.PutSchema(
        sql, datasets.landing, landing::MakeLandingSchema(spec_, rows_->column_set()),
        {.end = transaction.rid, .by = datasets.by}));
    return landing::WriteState(sql, datasets.landing.ToString(),
                               {.entries = {},
                                .touched = {},
                                .complete_until = {},
                                .resume = state_->ledger.resume,
                                .columns = rows_->column_set(),
                                .keys = rows_->source_keys(),
                                .commit_number = state_->commit_number});
  }

  void Remove(const WrittenFiles& made) {
    std::vector<std::string> locations;
    for (const StoredFile& file : made.rows) {
      locations.push_back(file.location);
    }
    if (made.letters) {
      locations.push_back(made.letters->location);
    }
    if (!made.kept.location.empty()) {
      locations.push_back(made.kept.location);
    }
    for (const std::string& location : locations) {
      const Status removed = catalog_.warehouse.Delete(location);
      if (!removed.ok()) {  // The sweep of the dataset gets it.
        Log(LogLevel::kWarning, "task", location + ": " + removed.ToString());
      }
    }
  }

  const ControlDeps& deps_;
  const catalog::CatalogDeps& catalog_;
  const ReplayRequest& request_;
  landing::LandingSpec spec_;
  std::string name_prefix_;
  ReplayReport report_;
  // Of the file under way.
  ReplayReport now_;
  Timestamp started_{};
  std::optional<landing::LandingState> state_;
  std::unique_ptr<LandingRows> rows_;
  std::unique_ptr<LandingFiles> files_;
  std::unique_ptr<DeadLetterFile> letters_;
};

}  // namespace

ReplayReport Sum(const ReplayReport& a, const ReplayReport& b) {
  return {.replayed = a.replayed + b.replayed,
          .rows = a.rows + b.rows,
          .rejected = a.rejected + b.rejected,
          .of_transforms = a.of_transforms + b.of_transforms,
          .without_record = a.without_record + b.without_record};
}

Result<ReplayReport> ReplayRejected(const ControlDeps& deps, const ReplayRequest& request) {
  return Replay(deps, request).Run();
}

}  // namespace tarn::task
