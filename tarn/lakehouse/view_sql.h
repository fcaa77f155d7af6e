// The SQL text of the current and the history view, for each engine that reads the table. Pure.
//
// Both views show rows as an apply would leave them, whether or not it has run: what is unapplied
// is folded by the query itself. docs/formats/internal_table.md gives the rules, fold.h is their
// other implementation, and the tests compare the two.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/lakehouse/fold.h"

namespace tarn::lakehouse {

enum class SqlDialect { kDuckDb, kSpark, kTrino };

/// "duckdb", "spark" or "trino". Errors: kInvalidArgument naming the three.
Result<SqlDialect> ParseSqlDialect(std::string_view text);
std::string_view SqlDialectName(SqlDialect dialect);

enum class NullKeys { kRejected, kAllowed };

/// Whether there is anything to fold; decided where the snapshot is known.
enum class Unapplied { kPossible, kNone };

/// What a view is made of.
struct ViewShape {
  std::vector<std::string> key_columns;   // At least one.
  std::vector<std::string> user_columns;  // In table order, keys among them.
  std::vector<std::string> view_headers;  // hdr__ columns the current view shows first.
  NullKeys null_keys = NullKeys::kRejected;
  FoldOptions fold;
};

/// Texts that can stand after FROM, each a relation in brackets or a name.
struct ViewSources {
  std::string current;  // Rows of Current, also those of soft deletes.
  std::string changes;  // Unapplied rows of Changes.
  std::string prior;    // Rows of Prior.
};

/// Relations over the one physical table, for engines that know only its name. `table` is the
/// two-part name, quoted for the dialect.
ViewSources SourcesOfTable(SqlDialect dialect, std::string_view table);

/// Header columns that the current view can show, in table order.
std::span<const std::string_view> ViewHeaders();

/// A row that no apply has written yet shows the headers that the apply will give it, but NULL as
/// hdr__modified_timestamp. Headers other than hdr__key_hash read Prior where hard deletes are kept
/// there. Errors: kInvalidArgument when a view header is none of ViewHeaders().
Result<std::string> CurrentViewSql(SqlDialect dialect, const ViewShape& shape,
                                   const ViewSources& sources, Unapplied unapplied);

/// Columns: hdr__key_hash, hdr__from_timestamp, hdr__to_timestamp, hdr__store, hdr__operation,
/// hdr__deleted, hdr__was_current_from_timestamp, hdr__was_current_to_timestamp, user columns.
std::string HistoryViewSql(SqlDialect dialect, const ViewShape& shape, const ViewSources& sources,
                           Unapplied unapplied);

/// The identifier `name` quoted for a dialect.
std::string QuoteIdentifier(SqlDialect dialect, std::string_view name);

}  // namespace tarn::lakehouse
