// DeletedRows: which rows of one file are deleted, by their number in the file, in a form that a
// scan can ask for every row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tarn::engine {

/// Blocks of 65,536 rows, each with its deleted rows as a sorted list or, from 4,097 on, as bits:
/// at most one bit for each row of a block, and no block without a deleted row. Immutable.
class DeletedRows {
 public:
  DeletedRows() = default;  // None.
  /// `positions`: ascending; doubles count once. Cost: O(n).
  static DeletedRows Of(std::span<const int64_t> positions);

  [[nodiscard]] bool Contains(int64_t position) const;
  /// Sets live[i] to whether positions[i] is not deleted. Fast where positions ascend.
  void MarkLive(std::span<const int64_t> positions, bool* live) const;
  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  [[nodiscard]] size_t size_bytes() const;

 private:
  struct Block {
    int64_t number = 0;    // Position / 65,536.
    size_t begin = 0;      // In values_ or words_.
    uint32_t count = 0;    // Of values.
    bool as_bits = false;  // In words_, 1,024 of them.
  };

  void AddBlock(int64_t number, std::span<const int64_t> positions);
  [[nodiscard]] const Block* Find(int64_t number) const;
  // `positions`: ascending, all in the block; live is all true.
  void MarkBlock(const Block& block, std::span<const int64_t> positions, bool* live) const;

  std::vector<Block> blocks_;  // By number.
  std::vector<uint16_t> values_;
  std::vector<uint64_t> words_;
};

}  // namespace tarn::engine
