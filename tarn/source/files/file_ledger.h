// FileLedger: which files have been dealt with, and the decision what to do with one that is found.
//
// Landing stores the ledger in the metastore, in the transaction of the commit; the source only
// reads it. Everything here is pure.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"
#include "tarn/source/files/file_position.h"
#include "tarn/source/files/path_pattern.h"

namespace tarn::source::files {

struct LedgerEntry {
  std::string key;
  FileVersion version;
  std::optional<uint64_t> content_hash;
  FileOutcome outcome = FileOutcome::kLoaded;
  bool loaded = false;  // Rows of this version, or of an earlier one, are in the dataset.
  friend bool operator==(const LedgerEntry&, const LedgerEntry&) = default;
};

/// What a task knows when it lists. Entries older than the window may be left out when every
/// pattern has a date.
struct FileLedger {
  std::map<std::string, LedgerEntry, std::less<>> entries;  // By key.
  std::optional<Timestamp> complete_until;                  // Of the newest FilesListed.
  std::optional<FileResume> resume;                         // A file committed in part.
  [[nodiscard]] const LedgerEntry* Find(std::string_view key) const;
};

/// Takes in how a file ended (`position.end` must be there). A touched file keeps its outcome and
/// hash; that some version was loaded is never forgotten. Drops a resume of that file.
void Record(FileLedger& ledger, const FilePosition& position);

/// How two states of one key are compared.
enum class VersionKind {
  kEtag,         // Object stores.
  kSizeAndTime,  // Local files: size and modification time, then content.
};

enum class OnChanged { kReport, kReload };

/// `process_files_from`.
struct ProcessFrom {
  enum class Kind { kEarliest, kNow, kBack };
  Kind kind = Kind::kEarliest;
  std::chrono::milliseconds back{};  // For kBack.
  friend bool operator==(const ProcessFrom&, const ProcessFrom&) = default;
};

/// Reads "earliest", "now" or a duration back. Errors: kInvalidArgument.
Result<ProcessFrom> ParseProcessFrom(std::string_view text);

struct DecideOptions {
  VersionKind version_kind = VersionKind::kSizeAndTime;
  OnChanged on_changed = OnChanged::kReport;
  bool read_future = false;  // `future: read`.
  ProcessFrom process_from;
  Timestamp first_start{};  // Of the task: what `now` and durations count from.
};

/// A file that a listing found and a pattern matched.
struct FoundFile {
  std::string key;
  FileVersion version;
  std::optional<DatePeriod> period;
  std::optional<uint64_t> content_hash;  // Known only after kCompareContent asked for it.
};

enum class FileAction {
  kLoad,            // Not loaded yet, or rejected or cut off before.
  kReload,          // Loaded in another version; to be read again.
  kCompareContent,  // Hash it and decide again.
  kTake,            // Touched, equal: only the ledger takes the version.
  kReport,          // Another version, not to be read; the ledger takes it, people hear of it.
  kReject,          // Zero bytes.
  kSkip,            // Dealt with, or from before process_files_from.
  kWait,            // Its date has not come.
};

struct FileDecision {
  FileAction action = FileAction::kLoad;
  std::string reason;  // For people; empty for kLoad.
  friend bool operator==(const FileDecision&, const FileDecision&) = default;
};

/// What to do with `found`, given what the ledger knows of its key (`known`, may be null).
FileDecision DecideFile(const FoundFile& found, const LedgerEntry* known,
                        const DecideOptions& options, Timestamp now);

}  // namespace tarn::source::files
