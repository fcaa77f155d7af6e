// JsonIndex: where in a text the structural characters of JSON are: brackets, colons, commas and
// the first characters of strings, numbers and literals, none of them inside a string.
//
// The first of two passes over JSON, 64 bytes at a time (the method of simdjson by Langdale and
// Lemire). It also finds whether the text is UTF-8 (Keiser and Lemire), whether a string is left
// open and whether a control character stands in one. Our own, because Arrow's libraries export the
// symbols of the simdjson they contain, so that a second version cannot be linked beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace tarn::format {

/// Reusable; one owner thread. Memory: 4 bytes per byte of the largest text.
class JsonIndex {
 public:
  /// Which instructions Find uses. Both give the same.
  enum class Level : uint8_t { kPortable, kAvx2 };

  /// The best this processor has.
  static Level BestLevel();

  explicit JsonIndex(Level level = BestLevel()) : level_(level) {}

  /// Indexes `text` (below 4 GiB). False, and an empty index, when some string is not closed or
  /// holds a control character, or some byte is not UTF-8.
  bool Find(std::string_view text);

  /// Offsets, ascending. Valid until the next Find.
  [[nodiscard]] const uint32_t* begin() const { return offsets_.get(); }
  [[nodiscard]] const uint32_t* end() const { return offsets_.get() + count_; }
  [[nodiscard]] uint32_t size() const { return count_; }
  [[nodiscard]] uint32_t operator[](size_t i) const { return offsets_[i]; }
  /// True when some backslash is in the text.
  [[nodiscard]] bool has_backslash() const { return has_backslash_; }

 private:
  Level level_;
  std::unique_ptr<uint32_t[]> offsets_;
  size_t capacity_ = 0;
  uint32_t count_ = 0;
  bool has_backslash_ = false;
};

}  // namespace tarn::format
