// FilesSource: reads files below a root of an object store, each once, in order of date and name.
//
// Every poll lists what ListingPlan says, asks DecideFile about each file that matches, and streams
// those to load in pieces. Memory holds the names of one poll and one piece, never a file.
//
// A file that begins like gzip, zstd, bzip2 or lz4 is handed over unpacked. One that is damaged or
// cut short, and one that begins like an archive or a columnar file, ends as kUnreadable: nothing
// of it counts and nobody removes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/base/hash.h"
#include "tarn/base/memory_budget.h"
#include "tarn/source/files/file_ledger.h"
#include "tarn/source/files/file_selection.h"
#include "tarn/source/files/listing_plan.h"
#include "tarn/source/files/path_pattern.h"
#include "tarn/source/source.h"
#include "tarn/storage/object_store.h"

namespace tarn::source::files {

struct FilesSourceOptions {
  std::vector<std::string> paths = {"*"};
  std::vector<std::string> exclude;
  std::vector<std::string> exclude_folders;  // "done": where MoveLoaded puts files. No patterns.
  ListingOptions listing;
  DecideOptions decide;
  uint64_t piece_bytes = 256ULL << 10;  // Payload of one item at most.
  size_t files_per_poll_max = 200'000;  // Names that one poll holds; the next goes on from there.
  int read_attempts_max = 5;            // Then a file that cannot be read is rejected.
  std::string name_prefix;              // Put before keys for hdr__file_name.
};

/// A store to read from, and what its keys are called outside.
struct SourceStore {
  std::unique_ptr<storage::ObjectStore> store;
  std::string name_prefix;
  VersionKind version_kind = VersionKind::kSizeAndTime;
};

/// Opens the place that `uri` of a source names, for reading only; never writes into it.
/// Errors: kNotFound; kUnimplemented for other schemes than file.
Result<SourceStore> OpenSourceStore(std::string_view uri);
/// The same place for RemoveLoaded and MoveLoaded. Folders that become empty stay.
Result<SourceStore> OpenSourceStoreForRemoval(std::string_view uri);

/// See Source. A file that cannot be read is rejected and the others go on. `store`, `ledger`,
/// `clock` and `budget` must outlive it; the ledger may change between two calls of Next.
class FilesSource final : public Source {
 public:
  struct Dependencies {
    storage::ObjectStore& store;
    const FileLedger& ledger;
    const Clock& clock;
    MemoryBudget& budget;
  };

  /// Errors: kInvalidArgument on a bad pattern or option.
  static Result<std::unique_ptr<FilesSource>> Open(const FilesSourceOptions& options,
                                                   const Dependencies& dependencies);

  ~FilesSource() override;
  FilesSource(const FilesSource&) = delete;
  FilesSource& operator=(const FilesSource&) = delete;

  /// Never waits for new files: a caught-up batch returns at once, and the next call lists again.
  Result<SourceBatch> Next(const BatchLimits& limits) override;
  void Cancel() override { cancelled_.store(true); }
  /// What the newest poll found and Next has not handed over yet. Cost: O(files found).
  [[nodiscard]] uint64_t waiting_bytes() const;
  /// Files that match and are left out for their names, such as names that are not UTF-8; each is
  /// counted once, up to kBadNamesMax.
  [[nodiscard]] int64_t bad_name_count() const { return static_cast<int64_t>(bad_names_.size()); }
  /// Names among them that were found since the last call, for people: bytes that are not UTF-8 as
  /// \xFF. At most kBadNamesShown in the life of the source.
  std::vector<std::string> TakeBadNames() { return std::exchange(new_bad_names_, {}); }
  static constexpr size_t kBadNamesMax = 100'000;
  static constexpr size_t kBadNamesShown = 10;

 private:
  struct Planned {
    FoundFile found;
    FileDecision decision;
  };
  struct Reading;
  struct Filling;

  using PlannedFiles = std::map<std::string, Planned>;

  FilesSource(const FilesSourceOptions& options, const Dependencies& dependencies,
              FileSelection selection);
  [[nodiscard]] Status CheckCancelled() const;
  [[nodiscard]] FileDecision Decide(const FoundFile& found) const;
  // Lists and decides: planned_ becomes what there is to do.
  Status Poll();
  Status ListPattern(size_t index, Timestamp now, PlannedFiles& planned);
  void LeaveOut(const std::string& key);
  void Consider(const storage::ObjectMeta& object, size_t index, Timestamp window_begin,
                PlannedFiles& planned);
  // Works on planned_ until the batch is full or nothing is left.
  Status FillBatch(Filling& filling);
  // Works on the first planned file until the batch is full or the file has ended.
  Status WorkOnFile(Filling& filling);
  Status Open(Filling& filling);
  Status CompareContent(storage::ObjectReader& reader);
  Status Resume();
  Result<bool> OnlyGrew(const FileResume& resume);
  Status ReadPiece(Filling& filling);
  Status ReadCompressedPiece(Filling& filling);
  Result<size_t> ReadMore();
  void HandOver(Filling& filling, std::string payload, std::optional<FileEnd> end);
  Result<FileEnd> EndOfRead(bool is_short) const;
  Status HashPart(storage::ObjectReader& reader, uint64_t size_bytes, Xxh3Stream& hash);
  void EndFile(Filling& filling, FileEnd end);
  [[nodiscard]] FilePosition PositionOf(const Planned& planned) const;

  const FilesSourceOptions options_;
  storage::ObjectStore& store_;
  const FileLedger& ledger_;
  const Clock& clock_;
  MemoryBudget& budget_;
  const FileSelection selection_;
  std::atomic<bool> cancelled_{false};
  std::deque<Planned> planned_;
  std::unique_ptr<Reading> reading_;                // The first of planned_, once opened.
  std::optional<Timestamp> listed_until_;           // Set while planned_ holds all of a poll.
  int attempts_ = 0;                                // Retryable failures of the first of planned_.
  std::map<std::string, FileVersion> handed_over_;  // Ended here, not yet in the ledger.
  std::set<uint64_t> bad_names_;                    // Hashes of the names.
  std::vector<std::string> new_bad_names_;
};

struct IncludedFile {
  std::string path;
  uint64_t size_bytes = 0;
  std::optional<Timestamp> date;
  friend bool operator==(const IncludedFile&, const IncludedFile&) = default;
};
struct ExcludedFile {
  std::string path;
  std::string reason;
  friend bool operator==(const ExcludedFile&, const ExcludedFile&) = default;
};
struct FilesPreview {
  std::vector<IncludedFile> included;  // In the order in which they would be read.
  std::vector<ExcludedFile> excluded;  // By name.
  bool truncated = false;              // More files lie there than `files_max`.
};

/// What a task with these options would read now, and why not the rest: `tarn landing preview`.
/// Lists everything below the root, reads no content. Errors: as FilesSource::Open and List.
Result<FilesPreview> PreviewFiles(const FilesSourceOptions& options,
                                  const FilesSource::Dependencies& dependencies,
                                  size_t files_max = 100'000);

}  // namespace tarn::source::files
