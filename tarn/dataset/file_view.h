// FileView: the files that a reader sees at a branch, a transaction, a range or a time.
//
// A view is resolved once to an immutable value and stays readable while others commit: pages and
// streams re-open the metastore by key. Listings are sorted by path bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/clock.h"
#include "tarn/dataset/ids.h"
#include "tarn/dataset/lineage.h"

namespace tarn::dataset {

/// One file of a view. Value.
struct File {
  std::string path;
  TransactionRid transaction;  // The one that wrote it.
  int64_t size_bytes = 0;
  Timestamp updated_at{};
  std::string location;  // Key in the dataset's object store, or a URI when not `managed`.
  bool managed = true;   // False: imported without copy; its bytes are never deleted by tarn.
  std::optional<uint64_t> checksum;  // XXH3 of the content.
  std::string etag;                  // Of an imported object; else empty.
  std::optional<int64_t> row_count;
  std::string statistics;  // As registered; only where it was asked for, else empty.

  friend bool operator==(const File&, const File&) = default;
};

/// How much of a file a listing reads.
enum class FileDetail : uint8_t { kPlain, kWithStatistics };

/// Which view is wanted. At most one of `end` and `at`; `start` needs `end` or `branch`.
struct ViewSelector {
  std::string branch{"master"};         // Ignored when `end` is given.
  std::optional<TransactionRid> end;    // An OPEN one shows its own files too.
  std::optional<TransactionRid> start;  // = end: the files of that one transaction.
  std::optional<Timestamp> at;          // The branch as it stood at that time.
};

/// A resolved view. Immutable; valid as long as its transactions' rows are kept.
struct FileView {
  DatasetRid dataset;
  std::optional<TransactionRid> end;    // Empty: the branch has no committed transaction.
  std::optional<TransactionRid> start;  // As asked for.
  std::optional<std::string> branch;    // As asked for; for messages only.
  Lineage lineage;

  /// True where there is no transaction at all, as opposed to an empty file set.
  [[nodiscard]] bool absent() const { return !end.has_value(); }
};

struct ListOptions {
  std::string prefix;      // When it equals a file's path, only that file is listed.
  int page_size = 1000;    // 1–50,000.
  std::string page_token;  // Empty = from the beginning.
};

struct FilePage {
  std::vector<File> files;
  std::optional<std::string> next_page_token;
  int64_t rows_examined = 0;
};

/// Batches of a streamed listing, in path order; outside of any SQL transaction. The span dies
/// with the call. A failure ends the stream and is returned.
using FileBatchCallback = std::function<Status(std::span<const File>)>;

}  // namespace tarn::dataset
