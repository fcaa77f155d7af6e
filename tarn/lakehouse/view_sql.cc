#include "tarn/lakehouse/view_sql.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tarn/lakehouse/header_columns.h"

namespace tarn::lakehouse {

namespace {

constexpr std::array kViewHeaders = {Name(HeaderColumn::kKeyHash), Name(HeaderColumn::kOperation),
                                     Name(HeaderColumn::kFromTimestamp),
                                     Name(HeaderColumn::kInsertedTimestamp),
                                     Name(HeaderColumn::kModifiedTimestamp)};

// Writes texts of one dialect for one view.
class ViewText {
 public:
  ViewText(SqlDialect dialect, const ViewShape& shape) : dialect_(dialect), shape_(shape) {}

  [[nodiscard]] std::string Quote(std::string_view name) const {
    return QuoteIdentifier(dialect_, name);
  }

  // "a.x, a.y" of the given columns.
  [[nodiscard]] std::string List(std::string_view alias,
                                 const std::vector<std::string>& columns) const {
    std::string text;
    for (const std::string& column : columns) {
      text += fmt::format("{}{}{}", text.empty() ? "" : ", ",
                          alias.empty() ? "" : std::string(alias) + ".", Quote(column));
    }
    return text;
  }
  [[nodiscard]] std::string Keys(std::string_view alias) const {
    return List(alias, shape_.key_columns);
  }
  [[nodiscard]] std::string Users(std::string_view alias) const {
    return List(alias, shape_.user_columns);
  }

  [[nodiscard]] std::string SameKey(std::string_view left, std::string_view right) const {
    std::string text;
    for (const std::string& column : shape_.key_columns) {
      text += fmt::format("{}{}.{} {} {}.{}", text.empty() ? "" : " AND ", left, Quote(column),
                          KeyEquals(), right, Quote(column));
    }
    return text;
  }

  // `left` rows without a partner in `right`, as the tail of a SELECT … FROM.
  [[nodiscard]] std::string AntiJoin(std::string_view left, std::string_view right_relation) const {
    switch (dialect_) {
      case SqlDialect::kDuckDb:
        return fmt::format("{} AS b ANTI JOIN {} AS t ON {} WHERE ", left, right_relation,
                           SameKey("b", "t"));
      case SqlDialect::kSpark:
        return fmt::format("{} AS b LEFT ANTI JOIN {} AS t ON {} WHERE ", left, right_relation,
                           SameKey("b", "t"));
      case SqlDialect::kTrino:
        break;
    }
    return fmt::format(
        "{} AS b LEFT JOIN (SELECT DISTINCT {}, 1 AS hdr__x_met FROM {} AS k) AS t "
        "ON {} WHERE t.hdr__x_met IS NULL AND ",
        left, Keys("k"), right_relation, SameKey("b", "t"));
  }

  // "PARTITION BY keys ORDER BY order" of window functions.
  [[nodiscard]] std::string Window(std::string_view alias, std::string_view order) const {
    return fmt::format("PARTITION BY {} ORDER BY {}.{}", Keys(alias), alias, order);
  }

 private:
  [[nodiscard]] std::string_view KeyEquals() const {
    if (shape_.null_keys == NullKeys::kRejected) {
      return "=";
    }
    return dialect_ == SqlDialect::kSpark ? "<=>" : "IS NOT DISTINCT FROM";
  }

  SqlDialect dialect_;
  const ViewShape& shape_;
};

constexpr std::string_view kNotDeleted = "hdr__operation NOT IN ('D', 'd')";

// The greatest change of each key decides what the current view shows of it.
std::string WinnersSql(const ViewText& text, const std::string& columns,
                       const ViewSources& sources) {
  return fmt::format(
      "SELECT {0} FROM (SELECT c.*, row_number() OVER ({1} DESC) AS hdr__x_rank FROM {2} AS c) AS "
      "w WHERE w.hdr__x_rank = 1 AND w.hdr__operation <> 'D'",
      columns, text.Window("c", "hdr__change_identifier"), sources.changes);
}

// Where the chain of from-times of a key starts.
struct ChainText {
  std::string join;   // Joins the relation that knows deleted keys, or empty.
  std::string value;  // From-time that the first version may not precede.
};

ChainText ChainOf(const ViewText& text, const ViewShape& shape, const ViewSources& sources) {
  if (!shape.fold.history || shape.fold.soft_delete) {
    return {"", "b.hdr__from_timestamp"};
  }
  return {fmt::format(" LEFT JOIN (SELECT {0}, max(p.hdr__from_timestamp) AS hdr__x_deleted FROM "
                      "{1} AS p WHERE p.hdr__operation IN ('D', 'd') GROUP BY {0}) AS d ON {2}",
                      text.Keys("p"), sources.prior, text.SameKey("d", "c")),
          "coalesce(b.hdr__from_timestamp, d.hdr__x_deleted)"};
}

// What the view that reads the versions needs of them.
struct VersionNeeds {
  bool births = false;  // When the key became live: hdr__x_born, the change that did it, or NULL.
};

// Where a hard delete leaves no trace, only the changes behind the last one count.
struct AfterlifeText {
  std::string died;    // Column of hdr__x_live: the last delete of the key.
  std::string behind;  // Condition on a row of it.
  std::string chain;   // Condition for the chain of the row in Current to hold.
};

AfterlifeText AfterlifeOf(const ViewText& text, const ViewShape& shape) {
  if (shape.fold.history || shape.fold.soft_delete) {
    return {};
  }
  return {fmt::format(", max(CASE WHEN r.hdr__operation = 'D' THEN r.hdr__change_identifier END) "
                      "OVER (PARTITION BY {}) AS hdr__x_died",
                      text.Keys("r")),
          " AND (l.hdr__x_died IS NULL OR l.hdr__change_identifier > l.hdr__x_died)",
          "f.hdr__x_died IS NULL AND "};
}

// CTEs that end in hdr__x_versions: one row per effective unapplied change with its interval, and
// in hdr__x_touched: the keys they belong to with the from-time of their first version.
std::string VersionsSql(const ViewText& text, const ViewShape& shape, const ViewSources& sources,
                        const VersionNeeds& needs) {
  const ChainText chain = ChainOf(text, shape, sources);
  const AfterlifeText afterlife = AfterlifeOf(text, shape);
  const std::string order = "hdr__change_identifier";
  std::string sql = fmt::format(
      "WITH hdr__x_read AS (SELECT {0}, c.hdr__key_hash, c.hdr__operation, c.hdr__timestamp, "
      "c.hdr__change_identifier, b.hdr__operation AS hdr__x_base, {1} AS hdr__x_chain, "
      "lag(c.hdr__operation) OVER ({2}) AS hdr__x_before{7} FROM {3} AS c LEFT JOIN {4} AS b ON "
      "{5}{6}), ",
      text.Users("c"), chain.value, text.Window("c", order), sources.changes, sources.current,
      text.SameKey("b", "c"), chain.join,
      needs.births ? ", c.hdr__inserted_timestamp, b.hdr__inserted_timestamp AS hdr__x_inserted"
                   : "");
  sql += fmt::format(
      "hdr__x_live AS (SELECT r.*, CASE WHEN r.hdr__x_before IS NULL THEN "
      "coalesce(r.hdr__x_base NOT IN ('D', 'd'), FALSE) ELSE r.hdr__x_before <> 'D' END AS "
      "hdr__x_was_live{} FROM hdr__x_read AS r), "
      "hdr__x_effective AS (SELECT l.* FROM hdr__x_live AS l WHERE (l.hdr__operation <> 'D' OR "
      "l.hdr__x_was_live){}), ",
      afterlife.died, afterlife.behind);
  const std::string born =
      needs.births ? fmt::format(
                         ", max(CASE WHEN e.hdr__operation <> 'D' AND NOT e.hdr__x_was_live THEN "
                         "e.hdr__change_identifier END) OVER ({} ROWS BETWEEN UNBOUNDED PRECEDING "
                         "AND CURRENT ROW) AS hdr__x_born",
                         text.Window("e", order))
                   : "";
  sql += fmt::format(
      "hdr__x_from AS (SELECT e.*, max(e.hdr__timestamp) OVER ({0} ROWS BETWEEN UNBOUNDED "
      "PRECEDING AND CURRENT ROW) AS hdr__x_latest, lag(e.hdr__change_identifier) OVER ({0}) AS "
      "hdr__x_previous, lead(e.hdr__change_identifier) OVER ({0}) AS hdr__x_next{3} "
      "FROM hdr__x_effective AS e), "
      "hdr__x_started AS (SELECT f.*, CASE WHEN {4}f.hdr__x_chain > f.hdr__x_latest THEN "
      "f.hdr__x_chain ELSE f.hdr__x_latest END AS hdr__x_start FROM hdr__x_from AS f), "
      "hdr__x_versions AS (SELECT s.*, lead(s.hdr__x_start) OVER ({1}) AS hdr__x_end FROM "
      "hdr__x_started AS s), "
      "hdr__x_touched AS (SELECT {2}, min(v.hdr__x_start) AS hdr__x_first FROM hdr__x_versions AS "
      "v GROUP BY {2}) ",
      text.Window("e", order), text.Window("s", order), text.Keys("v"), born, afterlife.chain);
  return sql;
}

constexpr std::string_view kNoTime = "CAST(NULL AS TIMESTAMP WITH TIME ZONE)";

std::string_view NoTime(SqlDialect dialect) {
  // Spark's TIMESTAMP is the instant type.
  return dialect == SqlDialect::kSpark ? "CAST(NULL AS TIMESTAMP)" : kNoTime;
}

// What the operation of a version becomes when it is applied.
constexpr std::string_view kFinalOperation =
    "CASE WHEN v.hdr__operation IN ('D', 'L') THEN v.hdr__operation WHEN v.hdr__x_was_live THEN "
    "'U' ELSE 'I' END";

// The current view where it shows headers that only a fold of the changes knows.
std::string FoldedCurrentSql(const ViewText& text, const ViewShape& shape,
                             const ViewSources& sources, std::string_view no_time) {
  std::string headers;
  for (const std::string& header : shape.view_headers) {
    std::string value = "v.hdr__key_hash";
    if (header == Name(HeaderColumn::kOperation)) {
      value = kFinalOperation;
    } else if (header == Name(HeaderColumn::kFromTimestamp)) {
      value = "v.hdr__x_start";
    } else if (header == Name(HeaderColumn::kInsertedTimestamp)) {
      value =
          "CASE WHEN v.hdr__x_born IS NULL THEN v.hdr__x_inserted ELSE q.hdr__inserted_timestamp "
          "END";
    } else if (header == Name(HeaderColumn::kModifiedTimestamp)) {
      value = no_time;
    }
    headers += fmt::format("{} AS {}, ", value, text.Quote(header));
  }
  const auto found = std::find(shape.view_headers.begin(), shape.view_headers.end(),
                               Name(HeaderColumn::kInsertedTimestamp));
  const VersionNeeds needs{.births = found != shape.view_headers.end()};
  return fmt::format(
      "{}SELECT {}, {} FROM {}b.{} UNION ALL SELECT {}{} FROM hdr__x_versions AS v{} WHERE "
      "v.hdr__x_next IS NULL AND v.hdr__operation <> 'D'",
      VersionsSql(text, shape, sources, needs), text.List("b", shape.view_headers), text.Users("b"),
      text.AntiJoin(sources.current, sources.changes), kNotDeleted, headers, text.Users("v"),
      needs.births ? " LEFT JOIN hdr__x_read AS q ON q.hdr__change_identifier = v.hdr__x_born"
                   : "");
}

// One SELECT of the history view: its own expressions before the user columns.
struct HistoryRow {
  std::string alias;
  std::string from = "hdr__from_timestamp";
  std::string to;
  std::string store;
  std::string operation;
  std::string was_from;
  std::string was_to;
};

std::string SelectHistory(const HistoryRow& row, const std::string& users) {
  return fmt::format(
      "SELECT {0}.hdr__key_hash AS hdr__key_hash, {0}.{1} AS hdr__from_timestamp, {2} AS "
      "hdr__to_timestamp, {3} AS hdr__store, {4} AS hdr__operation, {4} IN ('D', 'd') AS "
      "hdr__deleted, {5} AS hdr__was_current_from_timestamp, {6} AS "
      "hdr__was_current_to_timestamp, {7} FROM ",
      row.alias, row.from, row.to, row.store, row.operation, row.was_from, row.was_to, users);
}

std::string PriorRowsSql(const ViewText& text, const ViewSources& sources) {
  return SelectHistory({.alias = "p",
                        .to = "p.hdr__to_timestamp",
                        .store = "'PRIOR'",
                        .operation = "p.hdr__operation",
                        .was_from = "p.hdr__was_current_from_timestamp",
                        .was_to = "p.hdr__was_current_to_timestamp"},
                       text.Users("p")) +
         sources.prior + " AS p";
}

std::string CurrentRowSelect(const ViewText& text, std::string_view no_time) {
  return SelectHistory({.alias = "b",
                        .to = fmt::format("CASE WHEN b.{} THEN {} ELSE b.hdr__from_timestamp END",
                                          kNotDeleted, no_time),
                        .store = "'CURRENT'",
                        .operation = "b.hdr__operation",
                        .was_from = "b.hdr__modified_timestamp",
                        .was_to = std::string(no_time)},
                       text.Users("b"));
}

std::string SupersededRowsSql(const ViewText& text, const ViewSources& sources,
                              std::string_view no_time) {
  return SelectHistory(
             {.alias = "b",
              .to = fmt::format("CASE WHEN b.{} THEN t.hdr__x_first ELSE b.hdr__from_timestamp END",
                                kNotDeleted),
              .store = "'PRIOR'",
              .operation = "b.hdr__operation",
              .was_from = std::string(no_time),
              .was_to = std::string(no_time)},
             text.Users("b")) +
         fmt::format("{} AS b JOIN hdr__x_touched AS t ON {}", sources.current,
                     text.SameKey("b", "t"));
}

// Users columns of a version: its own, but those of the version before for a delete.
std::string VersionUsers(const ViewText& text, const ViewShape& shape) {
  std::string users;
  for (const std::string& column : shape.user_columns) {
    const std::string name = text.Quote(column);
    users += fmt::format(
        "{0}CASE WHEN v.hdr__operation <> 'D' THEN v.{1} WHEN v.hdr__x_previous IS NULL THEN b.{1} "
        "ELSE q.{1} END AS {1}",
        users.empty() ? "" : ", ", name);
  }
  return users;
}

std::string VersionRowsSql(const ViewText& text, const ViewShape& shape, const ViewSources& sources,
                           std::string_view no_time) {
  const std::string in_current = shape.fold.soft_delete
                                     ? "v.hdr__x_next IS NULL"
                                     : "v.hdr__x_next IS NULL AND v.hdr__operation <> 'D'";
  return SelectHistory(
             {.alias = "v",
              .from = "hdr__x_start",
              .to = "CASE WHEN v.hdr__operation = 'D' THEN v.hdr__x_start ELSE v.hdr__x_end END",
              .store = fmt::format("CASE WHEN {} THEN 'CURRENT' ELSE 'PRIOR' END", in_current),
              .operation = std::string(kFinalOperation),
              .was_from = std::string(no_time),
              .was_to = std::string(no_time)},
             VersionUsers(text, shape)) +
         fmt::format(
             "hdr__x_versions AS v LEFT JOIN hdr__x_read AS q ON q.hdr__change_identifier = "
             "v.hdr__x_previous AND v.hdr__operation = 'D' LEFT JOIN {} AS b ON {} AND "
             "v.hdr__operation = 'D'",
             sources.current, text.SameKey("b", "v"));
}

}  // namespace

Result<SqlDialect> ParseSqlDialect(std::string_view text) {
  for (const SqlDialect dialect : {SqlDialect::kDuckDb, SqlDialect::kSpark, SqlDialect::kTrino}) {
    if (text == SqlDialectName(dialect)) {
      return dialect;
    }
  }
  return Status::InvalidArgument(
      fmt::format("unknown SQL dialect \"{}\": use duckdb, spark or trino", text));
}

std::string_view SqlDialectName(SqlDialect dialect) {
  switch (dialect) {
    case SqlDialect::kDuckDb:
      return "duckdb";
    case SqlDialect::kSpark:
      return "spark";
    case SqlDialect::kTrino:
      return "trino";
  }
  return "duckdb";
}

std::string QuoteIdentifier(SqlDialect dialect, std::string_view name) {
  const char quote = dialect == SqlDialect::kSpark ? '`' : '"';
  std::string quoted(1, quote);
  for (const char c : name) {
    quoted += c;
    if (c == quote) {
      quoted += c;
    }
  }
  return quoted + quote;
}

ViewSources SourcesOfTable(SqlDialect dialect, std::string_view table) {
  const auto rows = [&](std::string_view partition, std::string_view more) {
    return fmt::format("(SELECT * FROM {} WHERE hdr__partition = '{}'{})", table, partition, more);
  };
  const std::string_view text_type = dialect == SqlDialect::kSpark ? "STRING" : "VARCHAR";
  const std::string unapplied = fmt::format(
      " AND hdr__change_identifier > (SELECT coalesce(max(hdr__apply_change_identifier), CAST('' "
      "AS {})) FROM {} WHERE hdr__partition = '{}')",
      text_type, table, kAssetStatePartition);
  return {.current = rows(kCurrentPartition, ""),
          .changes = rows(kChangesPartition, unapplied),
          .prior = rows(kPriorPartition, "")};
}

std::span<const std::string_view> ViewHeaders() { return kViewHeaders; }

Result<std::string> CurrentViewSql(SqlDialect dialect, const ViewShape& shape,
                                   const ViewSources& sources, Unapplied unapplied) {
  const ViewText text(dialect, shape);
  std::vector<std::string> columns = shape.view_headers;
  bool folded = false;  // Some header is known only after a fold of the changes.
  for (const std::string& header : shape.view_headers) {
    if (std::find(kViewHeaders.begin(), kViewHeaders.end(), header) == kViewHeaders.end()) {
      return Status::InvalidArgument(fmt::format("{} is no header column of a current view: use {}",
                                                 header, fmt::join(kViewHeaders, ", ")));
    }
    folded = folded || header != Name(HeaderColumn::kKeyHash);
  }
  columns.insert(columns.end(), shape.user_columns.begin(), shape.user_columns.end());
  if (unapplied == Unapplied::kNone) {
    return fmt::format("SELECT {} FROM {} AS b WHERE b.{}", text.List("b", columns),
                       sources.current, kNotDeleted);
  }
  if (folded) {
    return FoldedCurrentSql(text, shape, sources, NoTime(dialect));
  }
  return fmt::format("SELECT {} FROM {}b.{} UNION ALL {}", text.List("b", columns),
                     text.AntiJoin(sources.current, sources.changes), kNotDeleted,
                     WinnersSql(text, text.List("w", columns), sources));
}

std::string HistoryViewSql(SqlDialect dialect, const ViewShape& shape, const ViewSources& sources,
                           Unapplied unapplied) {
  const ViewText text(dialect, shape);
  const std::string_view no_time = NoTime(dialect);
  if (unapplied == Unapplied::kNone) {
    return fmt::format("{} UNION ALL {}{} AS b", PriorRowsSql(text, sources),
                       CurrentRowSelect(text, no_time), sources.current);
  }
  return fmt::format(
      "{}{} UNION ALL {}{}TRUE UNION ALL {} UNION ALL {}", VersionsSql(text, shape, sources, {}),
      PriorRowsSql(text, sources), CurrentRowSelect(text, no_time),
      text.AntiJoin(sources.current, "hdr__x_touched"), SupersededRowsSql(text, sources, no_time),
      VersionRowsSql(text, shape, sources, no_time));
}

}  // namespace tarn::lakehouse
