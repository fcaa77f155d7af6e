#include "tarn/source/files/file_ledger.h"

#include "tarn/base/check.h"
#include "tarn/base/quantity.h"

namespace tarn::source::files {

namespace {

// The kernel stamps files with a clock that ticks every few milliseconds: a file made just after a
// task's first start may carry a time just before it.
constexpr std::chrono::milliseconds kFileClockTick{10};

bool IsSame(const FileVersion& a, const FileVersion& b, VersionKind kind) {
  return kind == VersionKind::kEtag ? a.etag == b.etag && a.size_bytes == b.size_bytes
                                    : a.size_bytes == b.size_bytes && a.modified == b.modified;
}

bool IsBeforeStart(const FoundFile& found, const DecideOptions& options) {
  const ProcessFrom& from = options.process_from;
  if (from.kind == ProcessFrom::Kind::kEarliest) {
    return false;
  }
  const Timestamp start = options.first_start - from.back;
  if (found.period && found.period->end <= start) {
    return true;
  }
  // A date in the name says more than the time of the file, which a copy changes; but `now` means
  // what comes from now on.
  const bool by_file_time = from.kind == ProcessFrom::Kind::kNow || !found.period;
  return by_file_time && found.version.modified + kFileClockTick < start;
}

FileDecision DecideChanged(const FoundFile& found, const LedgerEntry& known,
                           const DecideOptions& options) {
  const std::string was = "changed since it was loaded (" +
                          std::to_string(known.version.size_bytes) + " bytes then, " +
                          std::to_string(found.version.size_bytes) + " now)";
  if (options.on_changed == OnChanged::kReload) {
    // Writers that replace a file in place empty it first; its new content comes later.
    return found.version.size_bytes == 0 ? FileDecision{FileAction::kSkip, was}
                                         : FileDecision{FileAction::kReload, was};
  }
  return {FileAction::kReport, was + "; on_changed: report"};
}

// Of a file whose rows are in the dataset.
FileDecision DecideLoaded(const FoundFile& found, const LedgerEntry& known,
                          const DecideOptions& options) {
  if (IsSame(found.version, known.version, options.version_kind)) {
    if (known.outcome == FileOutcome::kChangedIgnored) {
      return options.on_changed == OnChanged::kReload
                 ? DecideChanged(found, known, options)
                 : FileDecision{FileAction::kSkip, "changed since it was loaded; reported before"};
    }
    if (known.outcome == FileOutcome::kEmpty || known.outcome == FileOutcome::kUnreadable) {
      return {FileAction::kSkip,
              "rejected before (" + std::string(FileOutcomeName(known.outcome)) + ")"};
    }
    if (known.outcome == FileOutcome::kChangedWhileRead) {
      return DecideChanged(found, known, options);
    }
    return {FileAction::kSkip, "already loaded"};
  }
  const bool may_be_touched = options.version_kind == VersionKind::kSizeAndTime &&
                              known.content_hash.has_value() &&
                              found.version.size_bytes == known.version.size_bytes;
  if (may_be_touched && !found.content_hash) {
    return {FileAction::kCompareContent, "its time changed; comparing its content"};
  }
  if (may_be_touched && found.content_hash == known.content_hash) {
    return {FileAction::kTake, "already loaded; its time changed, its content did not"};
  }
  return DecideChanged(found, known, options);
}

}  // namespace

const LedgerEntry* FileLedger::Find(std::string_view key) const {
  const auto found = entries.find(key);
  return found == entries.end() ? nullptr : &found->second;
}

void Record(FileLedger& ledger, const FilePosition& position) {
  TARN_CHECK(position.end.has_value());
  LedgerEntry& entry = ledger.entries[position.key];
  entry.key = position.key;
  entry.version = position.version;
  if (ledger.resume && ledger.resume->key == position.key) {
    entry.loaded = true;  // Its first rows were committed.
    ledger.resume.reset();
  }
  if (position.end->outcome == FileOutcome::kTouched) {
    return;
  }
  entry.outcome = position.end->outcome;
  entry.content_hash = position.end->content_hash;
  entry.loaded = entry.loaded || entry.outcome == FileOutcome::kLoaded;
}

Result<ProcessFrom> ParseProcessFrom(std::string_view text) {
  if (text == "earliest") {
    return ProcessFrom{};
  }
  if (text == "now") {
    return ProcessFrom{.kind = ProcessFrom::Kind::kNow, .back = {}};
  }
  const Result<std::chrono::milliseconds> back = ParseDuration(text);
  if (!back.ok()) {
    return Status::InvalidArgument("bad process_files_from \"" + std::string(text) +
                                   "\": write earliest, now or a duration back such as 7d");
  }
  return ProcessFrom{.kind = ProcessFrom::Kind::kBack, .back = *back};
}

FileDecision DecideFile(const FoundFile& found, const LedgerEntry* known,
                        const DecideOptions& options, Timestamp now) {
  if (found.period && found.period->begin > now && !options.read_future) {
    return {FileAction::kWait,
            "its date has not come: read from " + FormatTimestamp(found.period->begin)};
  }
  if (known != nullptr && known->loaded) {
    return DecideLoaded(found, *known, options);
  }
  if (known == nullptr && IsBeforeStart(found, options)) {
    return {FileAction::kSkip, "from before process_files_from"};
  }
  const bool rejected_before =
      known != nullptr &&
      (known->outcome == FileOutcome::kEmpty || known->outcome == FileOutcome::kUnreadable) &&
      IsSame(found.version, known->version, options.version_kind);
  if (rejected_before) {
    return {FileAction::kSkip,
            "rejected before (" + std::string(FileOutcomeName(known->outcome)) + ")"};
  }
  if (found.version.size_bytes == 0) {
    return {FileAction::kReject, "zero bytes"};
  }
  return {FileAction::kLoad, {}};
}

}  // namespace tarn::source::files
