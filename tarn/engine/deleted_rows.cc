#include "tarn/engine/deleted_rows.h"

#include <algorithm>

namespace tarn::engine {
namespace {

constexpr int kBlockShift = 16;
constexpr size_t kWordsOfBlock = 1024;
constexpr size_t kListMax = 4096;  // Above, bits are smaller.

int64_t BlockOf(int64_t position) { return position >> kBlockShift; }
uint16_t ValueOf(int64_t position) { return static_cast<uint16_t>(position & 0xFFFF); }

}  // namespace

DeletedRows DeletedRows::Of(std::span<const int64_t> positions) {
  DeletedRows rows;
  for (size_t begin = 0; begin < positions.size();) {
    const int64_t number = BlockOf(positions[begin]);
    size_t end = begin + 1;
    while (end < positions.size() && BlockOf(positions[end]) == number) {
      ++end;
    }
    rows.AddBlock(number, positions.subspan(begin, end - begin));
    begin = end;
  }
  rows.blocks_.shrink_to_fit();
  rows.values_.shrink_to_fit();
  rows.words_.shrink_to_fit();
  return rows;
}

void DeletedRows::AddBlock(int64_t number, std::span<const int64_t> positions) {
  Block block{.number = number, .begin = values_.size()};
  for (const int64_t position : positions) {
    const uint16_t value = ValueOf(position);
    if (values_.size() == block.begin || values_.back() != value) {
      values_.push_back(value);
    }
  }
  const size_t count = values_.size() - block.begin;
  block.count = static_cast<uint32_t>(count);
  if (count > kListMax) {
    block.as_bits = true;
    const size_t list = block.begin;
    block.begin = words_.size();
    words_.resize(words_.size() + kWordsOfBlock);
    for (size_t i = list; i < values_.size(); ++i) {
      words_[block.begin + values_[i] / 64] |= 1ULL << (values_[i] % 64);
    }
    values_.resize(list);
  }
  blocks_.push_back(block);
}

const DeletedRows::Block* DeletedRows::Find(int64_t number) const {
  const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), number,
                                   [](const Block& block, int64_t n) { return block.number < n; });
  return at != blocks_.end() && at->number == number ? &*at : nullptr;
}

bool DeletedRows::Contains(int64_t position) const {
  bool live = true;
  MarkLive({&position, 1}, &live);
  return !live;
}

void DeletedRows::MarkLive(std::span<const int64_t> positions, bool* live) const {
  std::fill_n(live, positions.size(), true);
  for (size_t begin = 0; begin < positions.size();) {
    const int64_t number = BlockOf(positions[begin]);
    size_t end = begin + 1;
    while (end < positions.size() && positions[end] > positions[end - 1] &&
           BlockOf(positions[end]) == number) {
      ++end;
    }
    if (const Block* block = Find(number)) {
      MarkBlock(*block, positions.subspan(begin, end - begin), live + begin);
    }
    begin = end;
  }
}

void DeletedRows::MarkBlock(const Block& block, std::span<const int64_t> positions,
                            bool* live) const {
  if (block.as_bits) {
    const uint64_t* words = words_.data() + block.begin;
    for (size_t i = 0; i < positions.size(); ++i) {
      const uint16_t value = ValueOf(positions[i]);
      live[i] = (words[value / 64] >> (value % 64) & 1) == 0;
    }
    return;
  }
  const uint16_t first = ValueOf(positions.front());
  const uint16_t last = ValueOf(positions.back());
  const uint16_t* const stop = values_.data() + block.begin + block.count;
  const uint16_t* at = std::lower_bound(values_.data() + block.begin, stop, first);
  if (static_cast<size_t>(last - first) + 1 == positions.size()) {
    // Rows without a gap: only the deleted ones have to be looked at.
    for (; at != stop && *at <= last; ++at) {
      live[*at - first] = false;
    }
    return;
  }
  for (size_t i = 0; i < positions.size() && at != stop; ++i) {
    const uint16_t value = ValueOf(positions[i]);
    while (at != stop && *at < value) {
      ++at;
    }
    live[i] = at == stop || *at != value;
  }
}

size_t DeletedRows::size_bytes() const {
  return blocks_.capacity() * sizeof(Block) + values_.capacity() * sizeof(uint16_t) +
         words_.capacity() * sizeof(uint64_t);
}

}  // namespace tarn::engine
