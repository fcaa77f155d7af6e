#include <algorithm>
#include <chrono>

#include <arrow/api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/crash_point.h"
#include "tarn/base/log.h"
#include "tarn/format/column_set.h"
#include "tarn/landing/dead_letter_file.h"
#include "tarn/landing/landing_files.h"
#include "tarn/landing/landing_run.h"
#include "tarn/landing/landing_schema.h"
#include "tarn/landing/landing_state.h"
#include "tarn/source/files/loaded_files.h"

namespace tarn::landing {

namespace {

using source::SourceBatch;
using source::SourceItem;
using source::files::FileOutcome;
using source::files::FilePosition;
using source::files::FilesListed;
using source::files::LedgerEntry;

// What the next commit will write besides rows.
struct PendingState {
  std::vector<LedgerEntry> entries;
  std::vector<LedgerEntry> touched;   // Without rows of this commit.
  std::vector<std::string> removals;  // Keys, for delete_after_load and move_to.
  std::optional<Timestamp> complete_until;
  nlohmann::json file_record = nlohmann::json::array();
  std::optional<Timestamp> newest_event;
  std::vector<LandingWarning> warnings;
};

// A landing task over files.
struct FilesLanding final : LandingRun {
  FilesLanding(LandingSpec landing_spec, LandingDatasets landing_datasets, LandingDeps landing_deps)
      : spec(std::move(landing_spec)),
        datasets(std::move(landing_datasets)),
        deps(std::move(landing_deps)) {}

  Status Open() override;
  Result<LandingProgress> Step() override;
  void Cancel() override;
  Status FollowBranch(LandingState& known);
  Status TakeItems();
  Status TakePiece(const SourceItem& item, const FilePosition& position);
  Status EndFile(const FilePosition& position);
  Status StartOverWithout(const FilePosition& position, LandingProgress& progress);
  Status HandOver();
  [[nodiscard]] bool IsFull() const;
  [[nodiscard]] bool CanCut() const;
  [[nodiscard]] bool IsResumed(const std::string& key) const;
  [[nodiscard]] LandingPositions PositionsAfter(bool with_rows) const;
  Status Commit(LandingProgress& progress);
  [[nodiscard]] LandingProgress Counted(bool restarted) const;
  Result<std::optional<dataset::TransactionRid>> WriteCommit(
      metastore::SqlTransaction& sql, const std::vector<dataset::StoredFile>& new_files,
      const std::optional<dataset::StoredFile>& letter_file);
  Status RemoveLoadedFiles();
  Status RemoveLoadedFiles(const std::vector<LedgerEntry>& loaded);

  LandingSpec spec;
  LandingDatasets datasets;
  LandingDeps deps;
  LandingState landed;
  source::files::SourceStore place;
  std::optional<FilePosition> spoiled;  // A file whose rows have to be taken out of the batch.
  std::unique_ptr<source::files::FilesSource> source;
  SourceBatch unread;  // The newest one of the source; its items may go to several commits.
  size_t items_taken = 0;
  std::unique_ptr<LandingRows> rows;
  std::unique_ptr<LandingFiles> files;  // Of the batch under way.
  std::unique_ptr<DeadLetterFile> letters;
  PendingState pending;
  bool file_open = false;
  std::string open_key;
  uint64_t seen_bytes = 0;  // Of the open file, and their hash.
  uint64_t seen_hash = 0;
  int64_t rows_in_batch = 0;
  int64_t bytes_in_batch = 0;
  std::optional<Timestamp> newest_event;  // Of what is committed.
  Timestamp batch_start{};
  std::chrono::steady_clock::time_point batch_started;
  std::string stored_schema;
  std::atomic<bool> cancelled{false};
};

// A branch that was set back takes the state of the task with it: what later transactions landed
// is landed again. Transactions without positions (retention, other writers) do not count.
Status FilesLanding::FollowBranch(LandingState& known) {
  if (known.commit_number == 0) {
    return Status::Ok();
  }
  LandingPositions positions;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) {
    positions = {};
    return deps.datasets.VisitCommitted(
        sql, datasets.landing, dataset::kDefaultBranch,
        [&](const dataset::Transaction& transaction) -> Result<metastore::RowAction> {
          TARN_ASSIGN_OR_RETURN(const std::optional<LandingPositions> found,
                                DecodePositions(transaction.record_json.value_or("")));
          positions = found.value_or(LandingPositions{});
          return found ? metastore::RowAction::kStop : metastore::RowAction::kContinue;
        });
  }));
  if (positions.commit_number == known.commit_number) {
    return Status::Ok();
  }
  if (positions.commit_number > known.commit_number) {
    return BranchMovedAhead(spec, positions.commit_number, known.commit_number);
  }
  const std::string dataset = datasets.landing.ToString();
  return deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    if (deps.fence) {
      TARN_RETURN_IF_ERROR(deps.fence(sql));
    }
    TARN_ASSIGN_OR_RETURN(const int64_t forgotten, GoBack(sql, dataset, positions));
    Log(LogLevel::kWarning, "landing",
        fmt::format(
            "{}.{} was set back from transaction number {} of this task to {}: {} files are "
            "landed again",
            spec.schema, spec.name, known.commit_number, positions.commit_number, forgotten));
    TARN_ASSIGN_OR_RETURN(std::optional<LandingState> read, ReadState(sql, dataset));
    known = *std::move(read);
    return Status::Ok();
  });
}

Status FilesLanding::Open() {
  const std::string dataset = datasets.landing.ToString();
  std::optional<LandingState> known;
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(known, ReadState(sql, dataset));
    return Status::Ok();
  }));
  if (!known) {
    known.emplace();
    known->first_start = deps.clock.Now();
    known->source = spec.source_uri;
    TARN_RETURN_IF_ERROR(deps.database.Write(
        [&](metastore::SqlTransaction& sql) { return StartState(sql, dataset, *known); }));
  }
  if (known->source != spec.source_uri) {
    return Status::FailedPrecondition(fmt::format(
        "the dataset {}.{} lands {}, not {}: files of one name would be taken for each other; use "
        "another name or schema",
        spec.schema, spec.name, known->source, spec.source_uri));
  }
  TARN_RETURN_IF_ERROR(FollowBranch(*known));
  source.reset();  // It refers to the ledger.
  unread = {};
  items_taken = 0;
  landed = std::move(*known);
  TARN_ASSIGN_OR_RETURN(source::files::SourceStore opened,
                        source::files::OpenSourceStore(spec.source_uri));
  place = std::move(opened);
  source::files::FilesSourceOptions options = spec.files;
  options.name_prefix = place.name_prefix;
  options.decide.version_kind = place.version_kind;
  options.decide.first_start = landed.first_start;
  if (spec.after_load == AfterLoad::kMove) {
    options.exclude_folders.push_back(spec.move_to);
  }
  TARN_ASSIGN_OR_RETURN(
      source, source::files::FilesSource::Open(
                  options, source::files::FilesSource::Dependencies{*place.store, landed.ledger,
                                                                    deps.clock, deps.budget}));
  file_open = false;
  TARN_ASSIGN_OR_RETURN(rows, LandingRows::Make(spec, landed.columns, landed.keys));
  return RemoveLoadedFiles();
}

Status FilesLanding::HandOver() {
  for (DeadLetter& letter : rows->TakeDeadLetters()) {
    if (letters == nullptr) {
      letters = std::make_unique<DeadLetterFile>(
          DeadLetterFileOptions{.rejected = datasets.rejected, .landed = batch_start},
          deps.warehouse, deps.uuids);
    }
    TARN_RETURN_IF_ERROR(letters->Add(std::move(letter)));
  }
  TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch,
                        rows->TakeRows(batch_start));
  if (batch == nullptr) {
    return Status::Ok();
  }
  if (files == nullptr) {
    files = std::make_unique<LandingFiles>(LandingFilesOptions{.dataset = datasets.landing},
                                           deps.warehouse, deps.uuids);
  }
  rows_in_batch += batch->num_rows();
  pending.newest_event = std::max(pending.newest_event, NewestEvent(*batch));
  return files->Write(batch);
}

Status FilesLanding::EndFile(const FilePosition& position) {
  file_open = false;
  switch (position.end->outcome) {
    case FileOutcome::kLoaded:
      TARN_RETURN_IF_ERROR(rows->FinishFile());
      if (spec.after_load != AfterLoad::kKeep) {
        pending.removals.push_back(position.key);
      }
      break;
    case FileOutcome::kEmpty:
    case FileOutcome::kUnreadable:
    case FileOutcome::kChangedWhileRead: {
      if (rows->DropFile() > 0) {
        spoiled = position;
        return Status::Ok();
      }
      if (position.end->outcome == FileOutcome::kChangedWhileRead && IsResumed(position.key)) {
        return Status::Ok();  // Goes on behind what is committed, if it only grew.
      }
      if (position.end->outcome != FileOutcome::kChangedWhileRead) {
        rows->RejectFile(position, source::files::FileOutcomeName(position.end->outcome),
                         position.end->message);
      }
      break;
    }
    case FileOutcome::kChangedIgnored:
      pending.warnings.push_back({.code = "overwritten", .object = position.name});
      Log(LogLevel::kWarning, "landing",
          fmt::format("{}: overwritten after it was loaded; not read again (on_changed: report)",
                      position.name));
      break;
    case FileOutcome::kTouched:
      break;
  }
  source::files::Record(landed.ledger, position);
  if (const LedgerEntry* entry = landed.ledger.Find(position.key)) {
    const bool without_rows = position.end->outcome == FileOutcome::kTouched ||
                              position.end->outcome == FileOutcome::kChangedIgnored;
    (without_rows ? pending.touched : pending.entries).push_back(*entry);
  }
  if (pending.file_record.size() < 1000) {
    pending.file_record.push_back(
        {{"key", position.key},
         {"outcome", source::files::FileOutcomeName(position.end->outcome)}});
  }
  return Status::Ok();
}

Status FilesLanding::TakePiece(const SourceItem& item, const FilePosition& position) {
  const bool ends_without_read = position.end && item.payload.empty() && !file_open;
  if (!file_open || open_key != position.key) {
    rows->StartFile(position);
    open_key = position.key;
    file_open = !ends_without_read;
  }
  bytes_in_batch += static_cast<int64_t>(item.payload.size());
  if (!item.payload.empty()) {
    TARN_RETURN_IF_ERROR(rows->Feed(item.payload));
  }
  seen_bytes = position.offset_bytes + item.payload.size();
  seen_hash = position.content_hash;
  if (rows->IsPieceFull()) {
    // Should the file turn out not to count, the whole batch starts over without it.
    TARN_RETURN_IF_ERROR(HandOver());
  }
  return position.end ? EndFile(position) : Status::Ok();
}

// Takes items until the batch under way is full where it may be cut, or none is left.
Status FilesLanding::TakeItems() {
  while (items_taken < unread.items.size()) {
    const SourceItem& item = unread.items[items_taken++];
    if (const auto* position = std::get_if<FilePosition>(&item.position)) {
      TARN_RETURN_IF_ERROR(TakePiece(item, *position));
      if (spoiled || (IsFull() && CanCut())) {
        return Status::Ok();
      }
    } else if (const auto* listed = std::get_if<FilesListed>(&item.position)) {
      pending.complete_until = listed->until;
      landed.ledger.complete_until = listed->until;
    }
  }
  return Status::Ok();
}

// Between files, or inside one where another life of the task could go on. Only one file at a time
// may be committed in part: where to go on is remembered for one.
bool FilesLanding::CanCut() const {
  if (!file_open) {
    return true;
  }
  const bool other = landed.ledger.resume && landed.ledger.resume->key != open_key;
  return !other && rows->Resume().has_value();
}

// True when the first rows of the file are committed and the others are not.
bool FilesLanding::IsResumed(const std::string& key) const {
  return landed.ledger.resume && landed.ledger.resume->key == key;
}

LandingPositions FilesLanding::PositionsAfter(bool with_rows) const {
  LandingPositions positions{.commit_number = landed.commit_number + (with_rows ? 1 : 0),
                             .complete_until = landed.ledger.complete_until,
                             .resume = landed.ledger.resume};
  if (file_open && CanCut()) {
    positions.resume = rows->Resume();
    positions.resume->seen_bytes = seen_bytes;
    positions.resume->seen_hash = seen_hash;
  }
  return positions;
}

// Memory stays bounded also where a batch cannot be cut: pieces go to the writer as they fill.
bool FilesLanding::IsFull() const {
  const auto age = std::chrono::steady_clock::now() - batch_started;
  return rows_in_batch + rows->row_count() >= spec.commit.rows ||
         bytes_in_batch >= spec.commit.bytes || age >= spec.commit.interval;
}

Result<LandingProgress> FilesLanding::Step() {
  LandingProgress progress;
  batch_start = deps.clock.Now();
  batch_started = std::chrono::steady_clock::now();
  while (true) {
    if (cancelled.load()) {
      return Status(ErrorCode::kCancelled, "landing " + spec.name + " was stopped");
    }
    if (items_taken == unread.items.size()) {
      unread = {};
      items_taken = 0;
      TARN_ASSIGN_OR_RETURN(unread, source->Next({.bytes_max = kReadBytes}));
    }
    TARN_RETURN_IF_ERROR(TakeItems());
    progress.caught_up = unread.caught_up && items_taken == unread.items.size();
    if (spoiled) {
      TARN_RETURN_IF_ERROR(StartOverWithout(*std::exchange(spoiled, std::nullopt), progress));
      break;
    }
    if (progress.caught_up || (IsFull() && CanCut())) {
      break;
    }
  }
  if (!progress.restarted) {
    TARN_RETURN_IF_ERROR(Commit(progress));
  }
  progress.counts = rows->counts();
  progress.json_counters = rows->json_counters();
  progress.newest_event = newest_event;
  progress.waiting_bytes = source->waiting_bytes();
  progress.bad_names = source->bad_name_count();
  for (std::string& name : source->TakeBadNames()) {
    progress.warnings.push_back({.code = "bad_name", .object = std::move(name)});
  }
  return progress;
}

// Rows of a file that does not count went to the files of this batch: nothing of the batch is kept.
// The file's fate is committed alone, and the source starts again from the last commit.
Status FilesLanding::StartOverWithout(const FilePosition& position, LandingProgress& progress) {
  if (files != nullptr) {
    files->Abort();
    files.reset();
  }
  letters.reset();
  pending = {};
  rows_in_batch = 0;
  bytes_in_batch = 0;
  TARN_RETURN_IF_ERROR(Open());
  progress.caught_up = false;
  progress.restarted = true;
  if (position.end->outcome == FileOutcome::kChangedWhileRead && IsResumed(position.key)) {
    return Status::Ok();  // Goes on behind what is committed, if it only grew.
  }
  source::files::Record(landed.ledger, position);
  if (const LedgerEntry* entry = landed.ledger.Find(position.key)) {
    pending.entries.push_back(*entry);
  }
  if (position.end->outcome != FileOutcome::kChangedWhileRead) {
    rows->RejectFile(position, source::files::FileOutcomeName(position.end->outcome),
                     position.end->message);
  }
  return Commit(progress);
}

Result<std::optional<dataset::TransactionRid>> FilesLanding::WriteCommit(
    metastore::SqlTransaction& sql, const std::vector<dataset::StoredFile>& new_files,
    const std::optional<dataset::StoredFile>& letter_file) {
  if (deps.fence) {
    TARN_RETURN_IF_ERROR(deps.fence(sql));
  }
  std::optional<dataset::TransactionRid> committed;
  const LandingPositions positions = PositionsAfter(!new_files.empty());
  if (!new_files.empty()) {
    dataset::CommitFilesRequest request;
    request.dataset = datasets.landing;
    request.files = new_files;
    request.commit.by = datasets.by;
    request.commit.record_json =
        nlohmann::json{{"task", spec.name},
                       {"rows", rows_in_batch},
                       {"files", pending.file_record},
                       {"positions", nlohmann::json::parse(EncodePositions(positions))}}
            .dump();
    TARN_ASSIGN_OR_RETURN(const dataset::Transaction transaction,
                          deps.datasets.CommitFiles(sql, request));
    committed = transaction.rid;
    const std::string schema = MakeLandingSchema(spec, rows->column_set());
    if (schema != stored_schema) {
      TARN_RETURN_IF_ERROR(deps.datasets.PutSchema(sql, datasets.landing, schema,
                                                   {.end = transaction.rid, .by = datasets.by}));
    }
  }
  if (letter_file) {
    TARN_RETURN_IF_ERROR(CommitDeadLetters(
        sql, deps.datasets,
        {.rejected = datasets.rejected, .file = *letter_file, .by = datasets.by}));
  }
  const std::string dataset = datasets.landing.ToString();
  for (const std::string& key : pending.removals) {
    TARN_RETURN_IF_ERROR(AddRemoval(sql, dataset, key));
  }
  TARN_RETURN_IF_ERROR(WriteState(sql, dataset,
                                  {.entries = pending.entries,
                                   .touched = pending.touched,
                                   .complete_until = pending.complete_until,
                                   .resume = positions.resume,
                                   .columns = rows->column_set(),
                                   .keys = rows->source_keys(),
                                   .commit_number = positions.commit_number}));
  return committed;
}

// What is counted once the batch under way is committed.
LandingProgress FilesLanding::Counted(bool restarted) const {
  LandingProgress counted;
  counted.counts = rows->counts();
  counted.json_counters = rows->json_counters();
  counted.bad_names = source->bad_name_count();
  counted.newest_event = std::max(newest_event, pending.newest_event);
  counted.restarted = restarted;
  return counted;
}

Status FilesLanding::Commit(LandingProgress& progress) {
  TARN_RETURN_IF_ERROR(HandOver());
  std::vector<dataset::StoredFile> new_files;
  if (files != nullptr) {
    const std::unique_ptr<LandingFiles> closing = std::move(files);
    TARN_ASSIGN_OR_RETURN(new_files, closing->Close());
  }
  std::optional<dataset::StoredFile> letter_file;
  if (letters != nullptr) {
    const std::unique_ptr<DeadLetterFile> closing = std::move(letters);
    TARN_ASSIGN_OR_RETURN(letter_file, closing->Close());
  }
  if (new_files.empty() && !letter_file && pending.entries.empty() && pending.touched.empty() &&
      !pending.complete_until) {
    return Status::Ok();
  }
  CrashPoint("landing-before-commit");
  TARN_RETURN_IF_ERROR(deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(progress.newest, WriteCommit(sql, new_files, letter_file));
    return deps.on_commit ? deps.on_commit(sql, Counted(progress.restarted)) : Status::Ok();
  }));
  CrashPoint("landing-after-commit");
  const LandingPositions positions = PositionsAfter(!new_files.empty());
  landed.commit_number = positions.commit_number;
  landed.ledger.resume = positions.resume;
  rows->KeepFile();
  progress.commits += new_files.empty() ? 0 : 1;
  if (!new_files.empty()) {
    stored_schema = MakeLandingSchema(spec, rows->column_set());
  }
  const bool removals = !pending.removals.empty();
  newest_event = std::max(newest_event, pending.newest_event);
  progress.warnings = std::move(pending.warnings);
  pending = {};
  rows_in_batch = 0;
  bytes_in_batch = 0;
  return removals ? RemoveLoadedFiles() : Status::Ok();
}

// Deletes or moves what earlier commits made safe to remove, piece by piece: a crash in between
// leaves the rest in the queue, and a file that is gone already counts as removed.
Status FilesLanding::RemoveLoadedFiles() {
  if (spec.after_load == AfterLoad::kKeep) {
    return Status::Ok();
  }
  std::string after;
  while (!cancelled.load()) {
    std::vector<LedgerEntry> loaded;
    TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
      TARN_ASSIGN_OR_RETURN(loaded, ReadRemovals(sql, datasets.landing.ToString(), after));
      return Status::Ok();
    }));
    if (loaded.empty()) {
      return Status::Ok();
    }
    after = loaded.back().key;  // Those that fail now are tried again after the next commit.
    TARN_RETURN_IF_ERROR(RemoveLoadedFiles(loaded));
  }
  return Status::Ok();
}

Status FilesLanding::RemoveLoadedFiles(const std::vector<LedgerEntry>& loaded) {
  TARN_ASSIGN_OR_RETURN(const source::files::SourceStore writable,
                        source::files::OpenSourceStoreForRemoval(spec.source_uri));
  std::vector<source::files::Removal> removals;
  if (spec.after_load == AfterLoad::kMove) {
    TARN_ASSIGN_OR_RETURN(removals,
                          source::files::MoveLoaded(*writable.store, loaded, writable.version_kind,
                                                    spec.move_to, source::files::RunMode::kDoIt));
  } else {
    removals = source::files::RemoveLoaded(*writable.store, loaded, writable.version_kind,
                                           source::files::RunMode::kDoIt);
  }
  return deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    for (const source::files::Removal& removal : removals) {
      if (removal.outcome == source::files::RemovalOutcome::kFailed) {
        Log(LogLevel::kWarning, "landing",
            fmt::format("{}: {} stays: {}", spec.name, removal.key, removal.status.ToString()));
        continue;
      }
      TARN_RETURN_IF_ERROR(FinishRemoval(sql, datasets.landing.ToString(), removal.key));
    }
    return Status::Ok();
  });
}

void FilesLanding::Cancel() {
  cancelled.store(true);
  source->Cancel();
}

}  // namespace

std::unique_ptr<LandingRun> MakeFilesLanding(LandingSpec spec, LandingDatasets datasets,
                                             LandingDeps deps) {
  return std::make_unique<FilesLanding>(std::move(spec), std::move(datasets), std::move(deps));
}

}  // namespace tarn::landing
