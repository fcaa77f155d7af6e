// Change identifiers: 48 digits whose string order is the order in which changes apply.
//
//   1789000000000 2026113010154233 0000000000000000042
//   |             |                |
//   |             |                the table's running change number, 19 digits
//   |             source commit time, YYYYMMDDHHmmSShh in UTC, 16 digits
//   commit time of the row's landing transaction, ms since 1970, 13 digits
//
// The two times never go back within a table, so identifier order is arrival order wherever
// batches are cut, and a replay of the same landing transactions gives the same identifiers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tarn/base/clock.h"
#include "tarn/base/status.h"

namespace tarn::lakehouse {

inline constexpr size_t kChangeIdentifierSize = 48;

/// The three parts of an identifier. Value; ordered as its text is.
struct ChangeIdentifier {
  int64_t landed_millis = 0;      // Since 1970.
  int64_t source_hundredths = 0;  // Hundredths of a second since 1970.
  int64_t change_number = 0;      // From 1.

  friend auto operator<=>(const ChangeIdentifier&, const ChangeIdentifier&) = default;
};

/// 48 digits. Times outside the years 1970..9999 are clamped to them.
std::string FormatChangeIdentifier(const ChangeIdentifier& identifier);
/// Errors: kCorruption unless 48 digits that form a date.
Result<ChangeIdentifier> ParseChangeIdentifier(std::string_view text);

/// Gives the rows of one table their identifiers, in order. One owner thread.
///
/// Cost: a few nanoseconds a row while times repeat, since only the number is written anew.
class ChangeNumbering {
 public:
  /// Goes on after `last`; a default one starts a table.
  explicit ChangeNumbering(const ChangeIdentifier& last);

  /// Writes the next identifier, 48 bytes, to `out`.
  ///
  /// `landed` is the commit time of the row's landing transaction, `source` the commit time in the
  /// source (CDC) or again the landing commit time. Times before the previous row's are raised to
  /// them.
  void Next(Timestamp landed, Timestamp source, char* out);

  [[nodiscard]] const ChangeIdentifier& last() const { return last_; }

 private:
  ChangeIdentifier last_;
  char prefix_[29];  // Text of the two times of last_.
};

}  // namespace tarn::lakehouse
