// Where a piece of payload stood among files: the vocabulary between the files source and landing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"

namespace tarn::source::files {

/// One state of an object. Object stores tell states apart by etag, local files by size and time.
struct FileVersion {
  std::string etag;
  uint64_t size_bytes = 0;
  Timestamp modified{};
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

/// What became of a file.
enum class FileOutcome {
  kLoaded,            // Read to its end, unchanged meanwhile.
  kChangedWhileRead,  // It changed or vanished before its end: what was read of it does not count.
  kEmpty,             // Zero bytes: rejected.
  kUnreadable,        // Could not be read to its end: rejected, what was read does not count.
  kChangedIgnored,    // Another version of a loaded file, reported and not read.
  kTouched,           // New time, same content: nothing to read; the ledger takes the new version.
};

/// Stable name of an outcome, as the ledger stores it, e.g. "loaded".
std::string_view FileOutcomeName(FileOutcome outcome);
Result<FileOutcome> ParseFileOutcome(std::string_view name);

/// How a file ended.
struct FileEnd {
  FileOutcome outcome = FileOutcome::kLoaded;
  std::optional<uint64_t> content_hash;  // XXH3 of all bytes of a loaded file.
  std::string message;                   // Why, for people; empty when loaded.
  friend bool operator==(const FileEnd&, const FileEnd&) = default;
};

/// A piece of one file. The last piece (which may be empty) has `end`.
///
/// To resume within a file store its key, version, the offset after the last whole record (0 when
/// the file is compressed: then it is read again from its start) and the rows done: FileResume.
struct FilePosition {
  std::string key;   // Below the root of the source.
  std::string name;  // What hdr__file_name shows: full path of a local file, full key elsewhere.
  FileVersion version;
  std::optional<Timestamp> date;  // From the placeholders of the pattern.
  uint64_t offset_bytes = 0;      // Of the first byte of the payload; in the unpacked content.
  bool compressed = false;        // The payload was unpacked: no FileResume may lie inside.
  int64_t rows_done = 0;          // Rows before the first piece: 0, or those of FileResume.
  uint64_t content_hash = 0;      // XXH3 of the file up to the end of the payload.
  bool replaces = false;          // Loaded before in another version: on_changed is reload.
  std::optional<FileEnd> end;
  friend bool operator==(const FilePosition&, const FilePosition&) = default;
};

/// Everything that stood in the listed places when this poll began has been handed over: the next
/// window looks back from `until`. Comes as the last item of a poll, without payload.
struct FilesListed {
  Timestamp until{};
  friend bool operator==(const FilesListed&, const FilesListed&) = default;
};

/// Where to go on in a file that was committed in part.
struct FileResume {
  std::string key;
  FileVersion version;
  uint64_t offset_bytes = 0;
  int64_t rows_done = 0;
  // A file that only grew goes on: its first `seen_bytes`, at least those before the offset, still
  // have this XXH3.
  uint64_t seen_bytes = 0;
  uint64_t seen_hash = 0;
  friend bool operator==(const FileResume&, const FileResume&) = default;
};

}  // namespace tarn::source::files
