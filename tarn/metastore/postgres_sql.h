// The SQL text of the rooms as PostgreSQL reads it. Private to this room.
//
// Rooms write one subset (database.h). Statements differ in the places of arguments only; schemas
// also in the words for types, because SQLite's INTEGER has 64 bits and its TEXT compares bytes.
#pragma once

#include <string>
#include <string_view>

namespace tarn::metastore {

/// A statement with `$1` where the rooms write `?1`, and '\x61'::bytea for x'61'.
struct PostgresStatement {
  std::string text;
  int arguments = 0;     // The highest place.
  bool changes = false;  // Anything but SELECT, WITH and VALUES.
};

/// Texts, quoted names and comments stay as they are. Cost: O(text).
PostgresStatement TranslateStatement(std::string_view sql);

/// The statements of a migration: INTEGER becomes BIGINT (as a key alone: an identity), BLOB BYTEA,
/// REAL DOUBLE PRECISION, TEXT compares bytes, references can wait for the commit, and WITHOUT
/// ROWID goes. Only these words in capitals are read.
std::string TranslateSchema(std::string_view sql);

}  // namespace tarn::metastore
