#include "tarn/source/files/files_source.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tarn/base/hash.h"
#include "tarn/base/log.h"
#include "tarn/base/utf8.h"
#include "tarn/source/files/decompressor.h"
#include "tarn/source/files/file_form.h"
#include "tarn/storage/local_store.h"
#include "tarn/storage/object_key.h"

namespace tarn::source::files {

namespace {

constexpr size_t kListPageSize = 10'000;
constexpr uint64_t kPackedBytes = 64ULL << 10;  // Read at once of a compressed file.

FileVersion VersionOf(const storage::ObjectMeta& meta) {
  return {.etag = meta.etag, .size_bytes = meta.size_bytes, .modified = meta.modified};
}

std::optional<Timestamp> DateOf(const FoundFile& found) {
  return found.period ? std::optional(found.period->begin) : std::nullopt;
}

// What a task began with, where it did not begin with everything.
std::optional<Timestamp> StartOf(const DecideOptions& options) {
  return options.process_from.kind == ProcessFrom::Kind::kEarliest
             ? std::nullopt
             : std::optional(options.first_start - options.process_from.back);
}

// `future` is one setting that both the plan and the decision need.
DecideOptions WithFuture(DecideOptions decide, FuturePolicy future) {
  decide.read_future = future == FuturePolicy::kRead;
  return decide;
}

Status CheckOptions(const FilesSourceOptions& options) {
  if (options.piece_bytes == 0 || options.files_per_poll_max == 0 ||
      options.listing.prefixes_max == 0 || options.read_attempts_max < 1) {
    return Status::InvalidArgument("limits of a files source must not be zero");
  }
  return Status::Ok();
}

// Date first, then name: the order in which files are read.
bool IsReadBefore(const FoundFile& a, const FoundFile& b) {
  const Timestamp a_date = DateOf(a).value_or(Timestamp::min());
  const Timestamp b_date = DateOf(b).value_or(Timestamp::min());
  return a_date != b_date ? a_date < b_date : a.key < b.key;
}

// For people: bytes that are not UTF-8, and the backslash that shows them, as \xFF.
std::string ShownName(std::string_view name) {
  std::string shown;
  while (!name.empty()) {
    const size_t valid = FindInvalidUtf8(name).value_or(name.size());
    for (const char letter : name.substr(0, valid)) {
      const bool plain = static_cast<unsigned char>(letter) >= 0x20 && letter != '\\';
      shown += plain ? std::string(1, letter)
                     : fmt::format("\\x{:02X}", static_cast<unsigned char>(letter));
    }
    name.remove_prefix(valid);
    if (!name.empty()) {
      shown += fmt::format("\\x{:02X}", static_cast<unsigned char>(name.front()));
      name.remove_prefix(1);
    }
  }
  return shown;
}

Result<SourceStore> OpenStore(std::string_view uri, const storage::LocalStoreOptions& access) {
  const size_t colon = uri.find(':');
  if (colon != std::string_view::npos && uri.substr(0, colon) != "file") {
    return Status::Unimplemented("sources of scheme " + std::string(uri.substr(0, colon)) +
                                 " are not available in this version: " + storage::QuoteKey(uri));
  }
  storage::LocalStoreOptions options = access;
  TARN_ASSIGN_OR_RETURN(options.root, storage::PathOfFileUri(uri));
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::LocalStore> store,
                        storage::LocalStore::Open(options));
  std::string prefix = store->root_path();
  prefix += prefix.ends_with('/') ? "" : "/";
  return SourceStore{std::move(store), std::move(prefix), VersionKind::kSizeAndTime};
}

}  // namespace

struct FilesSource::Reading {
  std::unique_ptr<storage::ObjectReader> reader;
  Xxh3Stream hash;
  uint64_t offset_bytes = 0;  // Read of the file.
  int64_t rows_done = 0;
  std::unique_ptr<Decompressor> decompressor;  // Null: the file is plain.
  uint64_t unpacked_bytes = 0;                 // Handed over of a compressed file.
  std::string unpacked_head;                   // Its first kFormBytes, for CheckUnpacked.

  Status Recognise();
  [[nodiscard]] Status CheckUnpacked() const;
};

// Reads the first bytes. Errors: kUnimplemented when the file is of a form that nothing reads.
Status FilesSource::Reading::Recognise() {
  const storage::ObjectMeta& meta = reader->meta();
  std::string head(std::min<uint64_t>(kFormBytes, meta.size_bytes), '\0');
  TARN_ASSIGN_OR_RETURN(const size_t count, reader->ReadAt(0, head.size(), head.data()));
  head.resize(count);
  const FileForm form = RecogniseForm(head);
  if (!form.refused.empty()) {
    return Status::Unimplemented(
        fmt::format("{} is {}, which is not available in this version: put the content there plain "
                    "or packed with gzip, zstd, bzip2 or lz4",
                    storage::QuoteKey(meta.key), form.refused));
  }
  if (form.compression != Compression::kNone) {
    TARN_ASSIGN_OR_RETURN(decompressor, Decompressor::Make(form.compression));
  }
  return Status::Ok();
}

// What came out of a compressed file must be content, not another packed or columnar file.
Status FilesSource::Reading::CheckUnpacked() const {
  const FileForm form = RecogniseForm(unpacked_head);
  if (form == FileForm{}) {
    return Status::Ok();
  }
  const std::string what = form.refused.empty()
                               ? fmt::format("packed twice ({})", CompressionName(form.compression))
                               : std::string(form.refused);
  return Status::Unimplemented("what was unpacked is " + what +
                               ", which is not available in this version");
}

struct FilesSource::Filling {
  const BatchLimits& limits;
  SourceBatch batch;
  uint64_t room_bytes = 0;
  [[nodiscard]] bool full() const {
    return room_bytes == 0 || batch.items.size() >= limits.items_max;
  }
};

Result<SourceStore> OpenSourceStore(std::string_view uri) {
  return OpenStore(uri, {.root = {}, .access = storage::LocalAccess::kReadOnly});
}

Result<SourceStore> OpenSourceStoreForRemoval(std::string_view uri) {
  // The folders are somebody else's, who may be about to write into them.
  return OpenStore(uri, {.root = {}, .empty_directories = storage::EmptyDirectories::kKeep});
}

Result<std::unique_ptr<FilesSource>> FilesSource::Open(const FilesSourceOptions& options,
                                                       const Dependencies& dependencies) {
  TARN_RETURN_IF_ERROR(CheckOptions(options));
  TARN_ASSIGN_OR_RETURN(
      FileSelection selection,
      FileSelection::Parse(options.paths, options.exclude, options.exclude_folders));
  return std::unique_ptr<FilesSource>(new FilesSource(options, dependencies, std::move(selection)));
}

FilesSource::FilesSource(const FilesSourceOptions& options, const Dependencies& dependencies,
                         FileSelection selection)
    : options_(options),
      store_(dependencies.store),
      ledger_(dependencies.ledger),
      clock_(dependencies.clock),
      budget_(dependencies.budget),
      selection_(std::move(selection)) {}

FilesSource::~FilesSource() = default;

uint64_t FilesSource::waiting_bytes() const {
  uint64_t bytes = 0;
  for (const Planned& planned : planned_) {
    bytes += planned.found.version.size_bytes;
  }
  return bytes - std::min(bytes, reading_ ? reading_->offset_bytes : 0);
}

Status FilesSource::CheckCancelled() const {
  return cancelled_.load() ? Status(ErrorCode::kCancelled, "the files source was told to stop")
                           : Status::Ok();
}

Result<SourceBatch> FilesSource::Next(const BatchLimits& limits) {
  TARN_RETURN_IF_ERROR(CheckCancelled());
  if (limits.bytes_max == 0 || limits.items_max == 0) {
    return Status::InvalidArgument("a batch must be allowed at least one byte and one item");
  }
  if (planned_.empty() && !listed_until_) {
    TARN_RETURN_IF_ERROR(Poll());
  }
  Filling filling{.limits = limits, .batch = {}};
  if (!planned_.empty()) {
    const uint64_t wanted = std::min(limits.bytes_max, budget_.limit_bytes());
    Result<Reservation> memory = budget_.Reserve(wanted, "reading source files", limits.wait_max);
    if (memory.status().code() == ErrorCode::kResourceExhausted) {
      return SourceBatch{};
    }
    TARN_ASSIGN_OR_RETURN(filling.batch.memory, std::move(memory));
    filling.room_bytes = wanted;
    TARN_RETURN_IF_ERROR(FillBatch(filling));
    filling.batch.memory.ShrinkTo(wanted - filling.room_bytes);
  }
  if (planned_.empty() && listed_until_ && filling.batch.items.size() < limits.items_max) {
    filling.batch.items.push_back(
        {.payload = {}, .position = FilesListed{*listed_until_}, .event_time = *listed_until_});
    filling.batch.caught_up = true;
    listed_until_.reset();
  }
  return std::move(filling.batch);
}

FileDecision FilesSource::Decide(const FoundFile& found) const {
  return DecideFile(found, ledger_.Find(found.key),
                    WithFuture(options_.decide, options_.listing.future), clock_.Now());
}

Status FilesSource::Poll() {
  std::erase_if(handed_over_, [this](const auto& item) {
    const LedgerEntry* entry = ledger_.Find(item.first);
    return entry != nullptr && entry->version == item.second;
  });
  const Timestamp now = clock_.Now();
  PlannedFiles planned;
  for (size_t i = 0; i < selection_.patterns().size(); ++i) {
    TARN_RETURN_IF_ERROR(ListPattern(i, now, planned));
  }
  planned_.clear();
  // Cut short, the poll has not seen everything: only a later one may say so.
  if (planned.size() < options_.files_per_poll_max) {
    listed_until_ = now;
  }
  for (auto& [key, file] : planned) {
    planned_.push_back(std::move(file));
  }
  std::sort(planned_.begin(), planned_.end(),
            [](const Planned& a, const Planned& b) { return IsReadBefore(a.found, b.found); });
  return Status::Ok();
}

Status FilesSource::ListPattern(size_t index, Timestamp now, PlannedFiles& planned) {
  const ListingPlan plan = PlanListing(selection_.patterns()[index], options_.listing,
                                       ledger_.complete_until, StartOf(options_.decide), now);
  for (const ListingStep& step : plan.steps) {
    storage::ListRequest request{
        .prefix = step.prefix, .start_after = step.start_after, .limit = kListPageSize};
    for (bool more = true; more;) {
      TARN_RETURN_IF_ERROR(CheckCancelled());
      TARN_ASSIGN_OR_RETURN(const storage::ListPage page, store_.List(request));
      for (const storage::ObjectMeta& object : page.objects) {
        Consider(object, index, plan.window_begin, planned);
        if (planned.size() >= options_.files_per_poll_max) {
          return Status::Ok();
        }
        request.start_after = object.key;
      }
      more = page.truncated;
    }
  }
  return Status::Ok();
}

void FilesSource::LeaveOut(const std::string& key) {
  if (bad_names_.size() >= kBadNamesMax || !bad_names_.insert(Xxh3(key)).second ||
      bad_names_.size() > kBadNamesShown) {
    return;
  }
  new_bad_names_.push_back(ShownName(options_.name_prefix + key));
  Log(LogLevel::kWarning, "source", "a file is left out for its name: " + new_bad_names_.back());
}

void FilesSource::Consider(const storage::ObjectMeta& object, size_t index, Timestamp window_begin,
                           PlannedFiles& planned) {
  const std::optional<PathMatch> match = selection_.patterns()[index].Match(object.key);
  if (!match || (match->period && match->period->end <= window_begin) ||
      planned.contains(object.key) || selection_.ExcludedBy(object.key)) {
    return;
  }
  if (!storage::CheckKey(object.key).ok()) {
    LeaveOut(object.key);
    return;
  }
  FoundFile found{.key = object.key, .version = VersionOf(object), .period = match->period};
  const auto handed_over = handed_over_.find(object.key);
  if (handed_over != handed_over_.end() && handed_over->second == found.version) {
    return;
  }
  FileDecision decision = Decide(found);
  if (decision.action != FileAction::kSkip && decision.action != FileAction::kWait) {
    planned.emplace(object.key, Planned{std::move(found), std::move(decision)});
  }
}

Status FilesSource::FillBatch(Filling& filling) {
  while (!planned_.empty() && !filling.full()) {
    const Status status = WorkOnFile(filling);
    if (status.ok()) {
      attempts_ = 0;
      continue;
    }
    if (status.code() == ErrorCode::kCancelled) {
      return status;
    }
    if (IsRetryable(status.code()) && ++attempts_ < options_.read_attempts_max) {
      // What was read before goes out; the next call tries this file again where it stood.
      return filling.batch.items.empty() ? status : Status::Ok();
    }
    EndFile(filling, {.outcome = FileOutcome::kUnreadable, .message = status.ToString()});
  }
  return Status::Ok();
}

Status FilesSource::WorkOnFile(Filling& filling) {
  if (reading_ == nullptr) {
    const FileDecision& decision = planned_.front().decision;
    switch (decision.action) {
      case FileAction::kSkip:
      case FileAction::kWait:
        planned_.pop_front();
        return Status::Ok();
      case FileAction::kTake:
        EndFile(filling, {.outcome = FileOutcome::kTouched, .message = decision.reason});
        return Status::Ok();
      case FileAction::kReport:
        EndFile(filling, {.outcome = FileOutcome::kChangedIgnored, .message = decision.reason});
        return Status::Ok();
      case FileAction::kReject:
        EndFile(filling, {.outcome = FileOutcome::kEmpty, .message = decision.reason});
        return Status::Ok();
      case FileAction::kLoad:
      case FileAction::kReload:
      case FileAction::kCompareContent:
        break;
    }
    TARN_RETURN_IF_ERROR(Open(filling));
  }
  while (reading_ != nullptr && !filling.full()) {
    TARN_RETURN_IF_ERROR(CheckCancelled());
    TARN_RETURN_IF_ERROR(ReadPiece(filling));
  }
  return Status::Ok();
}

// Opens the first planned file, in whatever version it is by now. Leaves reading_ empty when its
// decision turned into one that reads nothing.
Status FilesSource::Open(Filling& filling) {
  Planned& planned = planned_.front();
  Result<std::unique_ptr<storage::ObjectReader>> opened = store_.OpenReader(planned.found.key);
  if (opened.status().code() == ErrorCode::kNotFound) {
    planned_.pop_front();  // Gone since it was listed; nothing of it was read.
    return Status::Ok();
  }
  TARN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ObjectReader> reader, std::move(opened));
  planned.found.version = VersionOf(reader->meta());
  planned.decision = Decide(planned.found);
  if (planned.decision.action == FileAction::kCompareContent) {
    TARN_RETURN_IF_ERROR(CompareContent(*reader));
  }
  if (planned.decision.action != FileAction::kLoad &&
      planned.decision.action != FileAction::kReload) {
    return WorkOnFile(filling);
  }
  reading_ = std::make_unique<Reading>();
  reading_->reader = std::move(reader);
  Status begun = reading_->Recognise();
  if (begun.ok()) {
    begun = Resume();
  }
  if (!begun.ok()) {
    reading_.reset();
  }
  return begun;
}

Status FilesSource::CompareContent(storage::ObjectReader& reader) {
  Planned& planned = planned_.front();
  Xxh3Stream hash;
  TARN_RETURN_IF_ERROR(HashPart(reader, planned.found.version.size_bytes, hash));
  planned.found.content_hash = hash.Digest();
  planned.decision = Decide(planned.found);
  return Status::Ok();
}

// True when the bytes that were seen before are still the first ones.
Result<bool> FilesSource::OnlyGrew(const FileResume& resume) {
  if (resume.seen_bytes == 0 || resume.seen_bytes > planned_.front().found.version.size_bytes) {
    return false;
  }
  Xxh3Stream hash;
  TARN_RETURN_IF_ERROR(HashPart(*reading_->reader, resume.seen_bytes, hash));
  return hash.Digest() == resume.seen_hash;
}

// Goes to where an earlier life of the task has committed this file, if it has.
Status FilesSource::Resume() {
  Planned& planned = planned_.front();
  const std::optional<FileResume>& resume = ledger_.resume;
  if (!resume || resume->key != planned.found.key) {
    return Status::Ok();
  }
  const FileVersion& version = planned.found.version;
  const bool same = resume->version.size_bytes == version.size_bytes &&
                    (options_.decide.version_kind == VersionKind::kEtag
                         ? resume->version.etag == version.etag
                         : resume->version.modified == version.modified);
  TARN_ASSIGN_OR_RETURN(const bool goes_on, same ? Result<bool>(true) : OnlyGrew(*resume));
  const bool plain = reading_->decompressor == nullptr;
  if (goes_on && plain && resume->offset_bytes <= version.size_bytes) {
    // The hash is of the whole file, so what is passed over is read, too.
    TARN_RETURN_IF_ERROR(HashPart(*reading_->reader, resume->offset_bytes, reading_->hash));
    reading_->offset_bytes = resume->offset_bytes;
    reading_->rows_done = resume->rows_done;
    return Status::Ok();
  }
  if (options_.decide.on_changed == OnChanged::kReload) {
    planned.decision = {FileAction::kReload, "changed after a part of it was loaded"};
    return Status::Ok();
  }
  reading_.reset();
  planned.decision = {FileAction::kReport, "changed after its first " +
                                               std::to_string(resume->rows_done) +
                                               " rows were loaded; on_changed: report"};
  return Status::Ok();
}

Status FilesSource::ReadPiece(Filling& filling) {
  if (reading_->decompressor != nullptr) {
    return ReadCompressedPiece(filling);
  }
  const Planned& planned = planned_.front();
  const uint64_t left = planned.found.version.size_bytes - reading_->offset_bytes;
  std::string payload(std::min({left, options_.piece_bytes, filling.room_bytes}), '\0');
  TARN_ASSIGN_OR_RETURN(
      const size_t count,
      reading_->reader->ReadAt(reading_->offset_bytes, payload.size(), payload.data()));
  const bool is_short = count < payload.size();
  std::optional<FileEnd> end;
  if (is_short || payload.size() == left) {
    TARN_ASSIGN_OR_RETURN(end, EndOfRead(is_short));
  }
  payload.resize(count);
  reading_->hash.Update(payload);
  HandOver(filling, std::move(payload), std::move(end));
  return Status::Ok();
}

// The next bytes of a compressed file for its decompressor; 0 when it became shorter.
Result<size_t> FilesSource::ReadMore() {
  Reading& reading = *reading_;
  const uint64_t left = planned_.front().found.version.size_bytes - reading.offset_bytes;
  std::string packed(std::min<uint64_t>(left, kPackedBytes), '\0');
  TARN_ASSIGN_OR_RETURN(const size_t count,
                        reading.reader->ReadAt(reading.offset_bytes, packed.size(), packed.data()));
  packed.resize(count);
  reading.hash.Update(packed);
  reading.offset_bytes += count;
  reading.decompressor->Feed(std::move(packed));
  return count;
}

// Unpacks what it has read before it reads more, so that a failure of the store loses nothing. The
// end comes as a piece of its own, without payload.
Status FilesSource::ReadCompressedPiece(Filling& filling) {
  Reading& reading = *reading_;
  std::string payload(std::min(options_.piece_bytes, filling.room_bytes), '\0');
  const std::string key = storage::QuoteKey(planned_.front().found.key);
  bool is_short = false;
  for (bool ended = false; !ended;) {
    TARN_RETURN_IF_ERROR(CheckCancelled());
    const Result<size_t> unpacked = reading.decompressor->Read(payload.data(), payload.size());
    if (unpacked.ok() && *unpacked > 0) {
      payload.resize(*unpacked);
      const bool had_head = reading.unpacked_head.size() == kFormBytes;
      reading.unpacked_head.append(payload, 0, kFormBytes - reading.unpacked_head.size());
      if (!had_head && reading.unpacked_head.size() == kFormBytes) {
        TARN_RETURN_IF_ERROR(reading.CheckUnpacked().WithContext(key));
      }
      HandOver(filling, std::move(payload), std::nullopt);
      return Status::Ok();
    }
    ended = !unpacked.ok() || reading.offset_bytes == planned_.front().found.version.size_bytes;
    if (!ended) {
      TARN_ASSIGN_OR_RETURN(const size_t more, ReadMore());
      is_short = ended = more == 0;
    }
  }
  TARN_ASSIGN_OR_RETURN(FileEnd end, EndOfRead(is_short));
  // What looks damaged may be half of a file that somebody is writing.
  if (end.outcome == FileOutcome::kLoaded) {
    TARN_RETURN_IF_ERROR(reading.decompressor->Finish().WithContext(key));
    TARN_RETURN_IF_ERROR(reading.CheckUnpacked().WithContext(key));
  }
  HandOver(filling, {}, std::move(end));
  return Status::Ok();
}

// Puts a piece of the first planned file into the batch; with `end` the file is done.
void FilesSource::HandOver(Filling& filling, std::string payload, std::optional<FileEnd> end) {
  const Planned& planned = planned_.front();
  if (end && end->outcome == FileOutcome::kLoaded) {
    end->content_hash = reading_->hash.Digest();
  }
  FilePosition position = PositionOf(planned);
  position.content_hash = reading_->hash.Digest();
  (position.compressed ? reading_->unpacked_bytes : reading_->offset_bytes) += payload.size();
  filling.room_bytes -= payload.size();
  const Timestamp time = planned.found.version.modified;
  if (end) {
    position.end = std::move(end);
    if (position.end->outcome != FileOutcome::kChangedWhileRead) {
      handed_over_[position.key] = position.version;
    }
    reading_.reset();
    planned_.pop_front();
  }
  filling.batch.items.push_back({std::move(payload), std::move(position), time});
}

// Whether the file is still what it was when it was opened.
Result<FileEnd> FilesSource::EndOfRead(bool is_short) const {
  const Planned& planned = planned_.front();
  if (is_short) {
    return FileEnd{.outcome = FileOutcome::kChangedWhileRead,
                   .message = "it became shorter while it was read"};
  }
  const Result<storage::ObjectMeta> now = store_.Head(planned.found.key);
  if (now.status().code() == ErrorCode::kNotFound) {
    return FileEnd{};  // Removed, but read whole before.
  }
  if (!now.ok()) {
    return now.status();
  }
  if (VersionOf(*now) != planned.found.version) {
    return FileEnd{.outcome = FileOutcome::kChangedWhileRead,
                   .message = "it changed while it was read (" +
                              std::to_string(planned.found.version.size_bytes) +
                              " bytes at the start, " + std::to_string(now->size_bytes) +
                              " at the end)"};
  }
  return FileEnd{};
}

// Reads the first `size_bytes`, in pieces.
Status FilesSource::HashPart(storage::ObjectReader& reader, uint64_t size_bytes, Xxh3Stream& hash) {
  std::string piece(std::min(options_.piece_bytes, size_bytes), '\0');
  for (uint64_t offset = 0; offset < size_bytes;) {
    TARN_RETURN_IF_ERROR(CheckCancelled());
    const size_t wanted = std::min<uint64_t>(piece.size(), size_bytes - offset);
    TARN_ASSIGN_OR_RETURN(const size_t count, reader.ReadAt(offset, wanted, piece.data()));
    if (count == 0) {
      return Status::Unavailable("file " + storage::QuoteKey(reader.meta().key) +
                                 " became shorter while it was read");
    }
    hash.Update(std::string_view(piece).substr(0, count));
    offset += count;
  }
  return Status::Ok();
}

// Ends the first planned file without payload.
void FilesSource::EndFile(Filling& filling, FileEnd end) {
  FilePosition position = PositionOf(planned_.front());
  handed_over_[position.key] = position.version;
  position.end = std::move(end);
  const Timestamp time = position.version.modified;
  filling.batch.items.push_back(
      {.payload = {}, .position = std::move(position), .event_time = time});
  reading_.reset();
  planned_.pop_front();
  attempts_ = 0;
}

FilePosition FilesSource::PositionOf(const Planned& planned) const {
  const bool compressed = reading_ && reading_->decompressor != nullptr;
  const uint64_t plain_offset = reading_ ? reading_->offset_bytes : 0;
  return {.key = planned.found.key,
          .name = options_.name_prefix + planned.found.key,
          .version = planned.found.version,
          .date = DateOf(planned.found),
          .offset_bytes = compressed ? reading_->unpacked_bytes : plain_offset,
          .compressed = compressed,
          .rows_done = reading_ ? reading_->rows_done : 0,
          .replaces = planned.decision.action == FileAction::kReload,
          .end = std::nullopt};
}

namespace {

// Why a file is left out, or nothing.
struct Judgement {
  FoundFile found;
  std::optional<std::string> excluded;
};

Judgement Judge(const storage::ObjectMeta& object, const FileSelection& selection,
                const FilesSourceOptions& options, const FilesSource::Dependencies& dependencies,
                Timestamp now) {
  Judgement judgement{.found = {.key = object.key, .version = VersionOf(object)}, .excluded = {}};
  const Status key = storage::CheckKey(object.key);
  if (!key.ok()) {
    judgement.excluded = key.message();
    return judgement;
  }
  for (const PathPattern& pattern : selection.patterns()) {
    const std::optional<PathMatch> match = pattern.Match(object.key);
    if (!match) {
      continue;
    }
    judgement.found.period = match->period;
    if (const auto rule = selection.ExcludedBy(object.key)) {
      judgement.excluded = "excluded by \"" + *rule + "\"";
      return judgement;
    }
    const ListingPlan plan = PlanListing(
        pattern, options.listing, dependencies.ledger.complete_until, StartOf(options.decide), now);
    const FileDecision decision =
        DecideFile(judgement.found, dependencies.ledger.Find(object.key),
                   WithFuture(options.decide, options.listing.future), now);
    if (decision.action != FileAction::kLoad && decision.action != FileAction::kReload &&
        decision.action != FileAction::kCompareContent) {
      judgement.excluded = decision.reason;
    } else if (match->period && match->period->end <= plan.window_begin) {
      judgement.excluded =
          "dated before the window, which begins at " + FormatTimestamp(plan.window_begin);
    }
    return judgement;
  }
  judgement.excluded = "matches none of the paths";
  return judgement;
}

}  // namespace

Result<FilesPreview> PreviewFiles(const FilesSourceOptions& options,
                                  const FilesSource::Dependencies& dependencies, size_t files_max) {
  TARN_RETURN_IF_ERROR(CheckOptions(options));
  TARN_ASSIGN_OR_RETURN(
      const FileSelection selection,
      FileSelection::Parse(options.paths, options.exclude, options.exclude_folders));
  const Timestamp now = dependencies.clock.Now();
  FilesPreview preview;
  std::vector<FoundFile> included;
  storage::ListRequest request{.prefix = {}, .start_after = {}, .limit = kListPageSize};
  for (bool more = true; more;) {
    TARN_ASSIGN_OR_RETURN(const storage::ListPage page, dependencies.store.List(request));
    for (const storage::ObjectMeta& object : page.objects) {
      if (included.size() + preview.excluded.size() == files_max) {
        preview.truncated = true;
        break;
      }
      Judgement judgement = Judge(object, selection, options, dependencies, now);
      if (judgement.excluded) {
        preview.excluded.push_back({object.key, *std::move(judgement.excluded)});
      } else {
        included.push_back(std::move(judgement.found));
      }
      request.start_after = object.key;
    }
    more = page.truncated && !preview.truncated;
  }
  std::sort(included.begin(), included.end(), IsReadBefore);
  for (const FoundFile& found : included) {
    preview.included.push_back({found.key, found.version.size_bytes, DateOf(found)});
  }
  return preview;
}

}  // namespace tarn::source::files
