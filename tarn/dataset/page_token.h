// Page tokens: opaque text that pins what a listing reads and where it goes on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"

namespace tarn::dataset {

/// Which listing a token belongs to; one of another kind is refused.
enum class TokenKind : char {
  kBranches = 'b',
  kReflog = 'r',
  kTransactions = 't',
  kBranchTransactions = 'h',
  kFiles = 'f',
  kIncrement = 'i',
  kCompare = 'c',
  kTags = 'g',
};

/// Letters, digits, '-' and '_'. `fields` may hold any bytes.
std::string EncodePageToken(TokenKind kind, const std::vector<std::string>& fields);

/// Errors: kInvalidArgument, reason InvalidPageToken, unless it is of this kind, whole, and has
/// exactly `field_count` fields. A token is no secret: the caller checks what it names.
Result<std::vector<std::string>> DecodePageToken(TokenKind kind, size_t field_count,
                                                 std::string_view token);

}  // namespace tarn::dataset
