// Bundle: a whole metastore as one text file that describes itself: to move it to another database
// or machine, to keep it, or to read it without this program.
//
// Lines of JSON, written once and never changed (docs/formats/metastore_bundle.md):
//   {"format": "tarn-metastore", "version": 1, "migrations": [{"room", "version", "hash"}]}
//   then for each table, by name:
//     {"table": NAME, "columns": [NAME …]}
//     [VALUE …]                                   one line per row
//     {"rows": N, "checksum": "xxh3:…"}           of the table's row lines
//   {"tables": N, "checksum": "xxh3:…"}           of all lines before
// A value is null, a number, a text, {"blob": BASE64}, or {"text": BASE64} for a text that is not
// UTF-8. A file without its last line is not whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/metastore/database.h"

namespace tarn::metastore {

struct BundleSummary {
  int64_t tables = 0;
  int64_t rows = 0;
};

/// Writes everything that `database` holds, as of one moment, to a new file; it has its name only
/// when it is whole and safe on disk. Cost: O(rows), constant memory.
/// Errors: kAlreadyExists when the file is there; kUnavailable when it cannot be written.
Result<BundleSummary> ExportBundle(Database& database, const std::filesystem::path& file);

/// Fills a database that has had no migration yet: first those of the bundle, then its rows, then
/// the migrations of `wanted` that came later. All rows are in one SQL transaction; of PostgreSQL
/// with the migrations of the bundle.
///
/// Errors: kNotFound when there is no such file; kCorruption, naming the line, when it is cut
/// short, changed or of another form; kFailedPrecondition when a newer version wrote it, or when
/// the database is not empty. After a failure a database of PostgreSQL is empty, or whole but for
/// later migrations, which its next server runs; one of SQLite is of no use.
Result<BundleSummary> ImportBundle(const std::filesystem::path& file, Database& database,
                                   const std::vector<Migration>& wanted);

}  // namespace tarn::metastore
