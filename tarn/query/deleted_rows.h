// DeletedRows: the rows of a table that a statement takes away, by data file. Made to be small: a
// statement may take a hundred million of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/base/uuid.h"
#include "tarn/iceberg/position_delete.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/update/table_operation.h"

namespace tarn::query {

/// Row numbers of one data file. Takes at most four bytes for each of them, a bit for each row of
/// the file where they are dense, and some 100 bytes for each 65,536 rows of the file.
class RowSet {
 public:
  /// False when the row is there already. `row`: from 0, less than the rows of a file.
  bool Add(int64_t row);
  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] iceberg::Positions ToPositions() const;
  [[nodiscard]] uint64_t memory_bytes() const;

 private:
  // Of 65,536 rows.
  struct Block {
    std::vector<uint16_t> few;   // Ascending; empty once there are bits.
    std::vector<uint64_t> bits;  // Empty while there are few.
  };
  static bool AddTo(Block& block, uint16_t row);

  std::vector<Block> blocks_;
  int64_t size_ = 0;
};

/// Not copyable. One thread.
class DeletedRows {
 public:
  DeletedRows() = default;
  DeletedRows(const DeletedRows&) = delete;
  DeletedRows& operator=(const DeletedRows&) = delete;

  /// False when the row is there already.
  bool Add(std::string_view file, int64_t row);
  [[nodiscard]] const RowSet* Find(const std::string& file) const;
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  std::map<std::string, RowSet, std::less<>> files_;
  std::pair<const std::string, RowSet>* last_ = nullptr;  // Rows of one file come together.
  int64_t size_ = 0;
};

struct RemovalOptions {
  int64_t positions_max = 4'000'000;  // Written at once, where one file does not have more.
};

/// Puts into `delta` what takes the rows away: files of which nothing is left, and delete files,
/// which are written, for the others. `delta` has what was written when this fails, too.
/// Memory: the set, and the positions of a few files at a time. Errors: those of the store.
Status RemoveRows(const iceberg::OperationContext& context, UuidGenerator& uuids,
                  const DeletedRows& rows, const RemovalOptions& options, iceberg::RowDelta& delta);

/// Puts all files of the table into `delta`, without reading a row, and gives how many rows were in
/// them; nothing when only their rows can tell, since equality deletes apply to them.
/// Errors: those of the store.
Result<std::optional<int64_t>> RemoveAllFiles(const iceberg::OperationContext& context,
                                              iceberg::RowDelta& delta);

}  // namespace tarn::query
