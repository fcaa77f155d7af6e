// Puffin files: blobs beside a table (deletion vectors, statistics) with a footer that lists them.
//
// Layout: magic "PFA1", blobs one after the other, footer. The footer is magic, JSON payload,
// payload size (i32, little endian), four bytes of flags, magic.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/storage/object_store.h"

namespace tarn::iceberg {

inline constexpr std::string_view kDeletionVectorBlob = "deletion-vector-v1";

/// What the footer says of one blob.
struct PuffinBlob {
  std::string type;
  std::vector<int32_t> fields;   // Field ids the blob is about.
  int64_t snapshot_id = -1;      // -1: inherited, as for deletion vectors.
  int64_t sequence_number = -1;  // Likewise.
  int64_t offset = 0;
  int64_t length = 0;
  std::optional<std::string> compression_codec;  // "lz4" or "zstd"; empty = none.
  std::map<std::string, std::string> properties;
  friend bool operator==(const PuffinBlob&, const PuffinBlob&) = default;
};

struct PuffinFooter {
  std::vector<PuffinBlob> blobs;
  std::map<std::string, std::string> properties;
  friend bool operator==(const PuffinFooter&, const PuffinFooter&) = default;
};

/// Builds a file in memory. One owner thread.
class PuffinWriter {
 public:
  PuffinWriter();
  /// Appends a blob as it is; offset and length of `blob` are set. Returns the blob as recorded.
  const PuffinBlob& Add(PuffinBlob blob, std::string_view bytes);
  [[nodiscard]] int64_t size_bytes() const { return static_cast<int64_t>(file_.size()); }
  /// The whole file.
  std::string Finish();

 private:
  std::string file_;
  std::vector<PuffinBlob> blobs_;
};

/// The footer of a file in memory. Errors: kCorruption for magic, sizes and blobs that do not fit
/// the file; kUnimplemented for a compressed footer.
Result<PuffinFooter> ParsePuffinFooter(std::string_view file);

/// The footer of a stored file, read from its end. Errors: as above, naming the file; those of the
/// store; kResourceExhausted for a footer above 64 MiB.
Result<PuffinFooter> ReadPuffinFooter(storage::ObjectStore& store, const std::string& uri);

}  // namespace tarn::iceberg
