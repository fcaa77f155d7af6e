#include "tarn/landing/landing_state.h"

#include <nlohmann/json.hpp>

namespace tarn::landing {

namespace {

using metastore::RowAction;
using metastore::SqlRow;
using metastore::SqlTransaction;
using metastore::SqlValue;
using source::files::FileResume;
using source::files::FileVersion;
using source::files::LedgerEntry;

constexpr std::string_view kSchema = R"sql(
CREATE TABLE landing_state (
  dataset TEXT PRIMARY KEY,
  first_start INTEGER NOT NULL,
  source TEXT NOT NULL,
  complete_until INTEGER,
  resume TEXT,
  columns TEXT NOT NULL
);
CREATE TABLE landing_file (
  dataset TEXT NOT NULL,
  key TEXT NOT NULL,
  etag TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  content_hash INTEGER,
  outcome TEXT NOT NULL,
  loaded INTEGER NOT NULL,
  PRIMARY KEY (dataset, key)
);
CREATE TABLE landing_removal (
  dataset TEXT NOT NULL,
  key TEXT NOT NULL,
  PRIMARY KEY (dataset, key)
);
)sql";

constexpr std::string_view kFileColumns =
    "SELECT f.key, f.etag, f.size_bytes, f.modified, f.content_hash, f.outcome, f.loaded FROM "
    "landing_file AS f ";

std::string EncodeResume(const FileResume& resume) {
  return nlohmann::json{{"key", resume.key},
                        {"etag", resume.version.etag},
                        {"size", resume.version.size_bytes},
                        {"modified", ToMicros(resume.version.modified)},
                        {"offset", resume.offset_bytes},
                        {"rows", resume.rows_done}}
      .dump();
}

Result<FileResume> DecodeResume(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return Status::Corruption("landing_state.resume is not a JSON object");
  }
  FileResume resume;
  resume.key = json.value("key", "");
  resume.version = {.etag = json.value("etag", ""),
                    .size_bytes = json.value("size", uint64_t{0}),
                    .modified = FromMicros(json.value("modified", int64_t{0}))};
  resume.offset_bytes = json.value("offset", uint64_t{0});
  resume.rows_done = json.value("rows", int64_t{0});
  return resume;
}

Result<LedgerEntry> EntryAt(const SqlRow& row) {
  LedgerEntry entry;
  entry.key = row.Text(0);
  entry.version = {.etag = std::string(row.Text(1)),
                   .size_bytes = static_cast<uint64_t>(row.Int(2)),
                   .modified = FromMicros(row.Int(3))};
  if (!row.IsNull(4)) {
    entry.content_hash = static_cast<uint64_t>(row.Int(4));
  }
  TARN_ASSIGN_OR_RETURN(entry.outcome, source::files::ParseFileOutcome(row.Text(5)));
  entry.loaded = row.Int(6) != 0;
  return entry;
}

Status WriteEntry(SqlTransaction& sql, std::string_view dataset, const LedgerEntry& entry) {
  const SqlValue hash = entry.content_hash ? SqlValue(static_cast<int64_t>(*entry.content_hash))
                                           : SqlValue(std::monostate());
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO landing_file (dataset, key, etag, size_bytes, modified, content_hash, outcome, "
      "loaded) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (dataset, key) DO UPDATE SET "
      "etag = excluded.etag, size_bytes = excluded.size_bytes, modified = excluded.modified, "
      "content_hash = excluded.content_hash, outcome = excluded.outcome, loaded = excluded.loaded",
      {std::string(dataset), entry.key, entry.version.etag,
       static_cast<int64_t>(entry.version.size_bytes), ToMicros(entry.version.modified), hash,
       std::string(source::files::FileOutcomeName(entry.outcome)),
       static_cast<int64_t>(entry.loaded)}));
  return Status::Ok();
}

}  // namespace

std::vector<metastore::Migration> Migrations() { return {{"landing", 1, std::string(kSchema)}}; }

Result<std::optional<LandingState>> ReadState(SqlTransaction& sql, std::string_view dataset) {
  std::optional<LandingState> state;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT first_start, complete_until, resume, columns, source FROM landing_state "
                "WHERE dataset "
                "= ?1",
                {std::string(dataset)}, [&](const SqlRow& row) -> Result<RowAction> {
                  LandingState read;
                  read.first_start = FromMicros(row.Int(0));
                  read.source = row.Text(4);
                  if (!row.IsNull(1)) {
                    read.ledger.complete_until = FromMicros(row.Int(1));
                  }
                  if (!row.IsNull(2)) {
                    TARN_ASSIGN_OR_RETURN(read.ledger.resume, DecodeResume(row.Text(2)));
                  }
                  if (!row.Text(3).empty()) {
                    TARN_ASSIGN_OR_RETURN(read.columns, format::DecodeColumnSet(row.Text(3)));
                  }
                  state = std::move(read);
                  return RowAction::kStop;
                }));
  if (!state) {
    return state;
  }
  TARN_RETURN_IF_ERROR(sql.Query(std::string(kFileColumns) + "WHERE f.dataset = ?1",
                                 {std::string(dataset)},
                                 [&](const SqlRow& row) -> Result<RowAction> {
                                   TARN_ASSIGN_OR_RETURN(LedgerEntry entry, EntryAt(row));
                                   std::string key = entry.key;
                                   state->ledger.entries.emplace(std::move(key), std::move(entry));
                                   return RowAction::kContinue;
                                 }));
  return state;
}

Result<format::ColumnSet> ReadColumns(SqlTransaction& sql, std::string_view dataset) {
  format::ColumnSet columns;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT columns FROM landing_state WHERE dataset = ?1", {std::string(dataset)},
                [&](const SqlRow& row) -> Result<RowAction> {
                  if (!row.Text(0).empty()) {
                    TARN_ASSIGN_OR_RETURN(columns, format::DecodeColumnSet(row.Text(0)));
                  }
                  return RowAction::kStop;
                }));
  return columns;
}

Status StartState(SqlTransaction& sql, std::string_view dataset, const LandingState& state) {
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO landing_state (dataset, first_start, source, complete_until, resume, columns) "
      "VALUES (?1, ?2, ?3, NULL, NULL, '')",
      {std::string(dataset), ToMicros(state.first_start), state.source}));
  return Status::Ok();
}

Status WriteState(SqlTransaction& sql, std::string_view dataset, const LandingStateChange& change) {
  for (const LedgerEntry& entry : change.entries) {
    TARN_RETURN_IF_ERROR(WriteEntry(sql, dataset, entry));
  }
  const SqlValue until = change.complete_until ? SqlValue(ToMicros(*change.complete_until))
                                               : SqlValue(std::monostate());
  const SqlValue resume =
      change.resume ? SqlValue(EncodeResume(*change.resume)) : SqlValue(std::monostate());
  TARN_ASSIGN_OR_RETURN(
      const int64_t updated,
      sql.Execute("UPDATE landing_state SET complete_until = coalesce(?1, complete_until), resume "
                  "= ?2, columns = ?3 WHERE dataset = ?4",
                  {until, resume, format::EncodeColumnSet(change.columns), std::string(dataset)}));
  if (updated != 1) {
    return Status::NotFound("the landing task of " + std::string(dataset) + " was never started");
  }
  return Status::Ok();
}

Result<std::vector<LedgerEntry>> ReadRemovals(SqlTransaction& sql, std::string_view dataset) {
  std::vector<LedgerEntry> entries;
  TARN_RETURN_IF_ERROR(sql.Query(
      std::string(kFileColumns) +
          "JOIN landing_removal AS r ON r.dataset = f.dataset AND r.key = f.key WHERE f.dataset = "
          "?1 ORDER BY f.key LIMIT 1000",
      {std::string(dataset)}, [&](const SqlRow& row) -> Result<RowAction> {
        TARN_ASSIGN_OR_RETURN(LedgerEntry entry, EntryAt(row));
        entries.push_back(std::move(entry));
        return RowAction::kContinue;
      }));
  return entries;
}

Status AddRemoval(SqlTransaction& sql, std::string_view dataset, std::string_view key) {
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO landing_removal (dataset, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
      {std::string(dataset), std::string(key)}));
  return Status::Ok();
}

Status FinishRemoval(SqlTransaction& sql, std::string_view dataset, std::string_view key) {
  TARN_RETURN_IF_ERROR(sql.Execute("DELETE FROM landing_removal WHERE dataset = ?1 AND key = ?2",
                                   {std::string(dataset), std::string(key)}));
  return Status::Ok();
}

}  // namespace tarn::landing
