// Canonical text of values and the hash of keys: the text that is hashed must be the same in every
// version and on every machine.
//
// boolean true/false; integers decimal; decimals with all digits of their scale; float and double
// as the shortest digits that read back (scientific iff the decimal exponent is < -4 or >= 16, at
// least two exponent digits, "100000.0", "1e+16", NaN, Infinity, -0.0 as 0.0); date 2026-01-31;
// timestamps with six fractional digits, Z for instants; time HH:MM:SS.ffffff; uuid lower-case;
// binary upper-case hexadecimal; string as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "tarn/base/status.h"

namespace tarn::transform {

/// True when values of the type have a canonical text: everything but nested types and null.
bool HasCanonicalText(const arrow::DataType& type);

/// Texts of a column, one after the other; text i is bytes[offsets[i], offsets[i + 1]). A NULL is
/// the single byte 0x00.
struct CanonicalTexts {
  std::vector<int64_t> offsets;
  std::string bytes;
};

/// Errors: kInvalidArgument naming the type when it has none.
Result<CanonicalTexts> MakeCanonicalTexts(const arrow::Array& column);

/// SHA-1 of the key of each row: the canonical texts of its columns, in key order, joined by the
/// byte 0x08. fixed_size_binary(20), no NULLs.
/// Errors: kInvalidArgument on no column, columns of different lengths, or a column that may not be
/// a key (float, double, nested). Cost: one pass, ~100 ns a row.
Result<std::shared_ptr<arrow::Array>> KeyHashes(
    const std::vector<std::shared_ptr<arrow::Array>>& key_columns);
/// The same for columns of a batch, by index.
Result<std::shared_ptr<arrow::Array>> KeyHashes(const arrow::RecordBatch& batch,
                                                const std::vector<int>& key_columns);

/// True when a column of the type may be a key: it has canonical text and is no float or double.
bool CanBeKey(const arrow::DataType& type);

/// SHA-1 of the canonical text as lower-case hexadecimal, NULL where the value is: the column
/// action `hash`.
Result<std::shared_ptr<arrow::Array>> HashColumn(const arrow::Array& column);

}  // namespace tarn::transform
