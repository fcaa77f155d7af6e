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

// Which commit a file's rows came with: a branch that is set back takes its later files back, too.
constexpr std::string_view kCommitNumbers = R"sql(
ALTER TABLE landing_state ADD COLUMN commit_number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE landing_file ADD COLUMN commit_number INTEGER NOT NULL DEFAULT 0;
)sql";

constexpr std::string_view kSourceKeys = R"sql(
ALTER TABLE landing_state ADD COLUMN source_keys TEXT NOT NULL DEFAULT '{}';
)sql";

constexpr std::string_view kKafkaOffsets = R"sql(
ALTER TABLE landing_state ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
CREATE TABLE landing_offset (
  dataset TEXT NOT NULL,
  topic TEXT NOT NULL,
  partition_number INTEGER NOT NULL,
  first_offset INTEGER NOT NULL,
  next_offset INTEGER NOT NULL,
  PRIMARY KEY (dataset, topic, partition_number)
);
)sql";

// What tells a topic from one of the same name that was made later.
constexpr std::string_view kSeenMessages = R"sql(
ALTER TABLE landing_offset ADD COLUMN seen_offset INTEGER;
ALTER TABLE landing_offset ADD COLUMN seen_digest INTEGER;
)sql";

// Where the ranges in the records of transactions end; NULL: at next_offset.
constexpr std::string_view kRecordedOffsets = R"sql(
ALTER TABLE landing_offset ADD COLUMN recorded_offset INTEGER;
)sql";

constexpr std::string_view kFileColumns =
    "SELECT f.key, f.etag, f.size_bytes, f.modified, f.content_hash, f.outcome, f.loaded FROM "
    "landing_file AS f ";

nlohmann::json ToJson(const FileResume& resume) {
  return {{"key", resume.key},
          {"etag", resume.version.etag},
          {"size", resume.version.size_bytes},
          {"modified", ToMicros(resume.version.modified)},
          {"offset", resume.offset_bytes},
          {"rows", resume.rows_done},
          {"seen", resume.seen_bytes},
          {"seen_hash", resume.seen_hash}};
}

SqlValue ResumeValue(const std::optional<FileResume>& resume) {
  return resume ? SqlValue(ToJson(*resume).dump()) : SqlValue(std::monostate());
}

SqlValue TimeValue(const std::optional<Timestamp>& time) {
  return time ? SqlValue(ToMicros(*time)) : SqlValue(std::monostate());
}

Result<FileResume> ResumeOf(const nlohmann::json& json) {
  const auto has = [&](const char* name, auto is) {
    return !json.contains(name) || (json[name].*is)();
  };
  if (!json.is_object() || !has("key", &nlohmann::json::is_string) ||
      !has("etag", &nlohmann::json::is_string) || !has("size", &nlohmann::json::is_number) ||
      !has("modified", &nlohmann::json::is_number) || !has("offset", &nlohmann::json::is_number) ||
      !has("rows", &nlohmann::json::is_number) || !has("seen", &nlohmann::json::is_number) ||
      !has("seen_hash", &nlohmann::json::is_number)) {
    return Status::Corruption("the place to go on in a file is unreadable: " + json.dump());
  }
  FileResume resume;
  resume.key = json.value("key", "");
  resume.version = {.etag = json.value("etag", ""),
                    .size_bytes = json.value("size", uint64_t{0}),
                    .modified = FromMicros(json.value("modified", int64_t{0}))};
  resume.offset_bytes = json.value("offset", uint64_t{0});
  resume.rows_done = json.value("rows", int64_t{0});
  resume.seen_bytes = json.value("seen", uint64_t{0});
  resume.seen_hash = json.value("seen_hash", uint64_t{0});
  return resume;
}

Result<FileResume> DecodeResume(std::string_view text) {
  return ResumeOf(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false));
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

enum class EntryRows { kOfThisCommit, kOfBefore };

Status WriteEntry(SqlTransaction& sql, std::string_view dataset, const LedgerEntry& entry,
                  int64_t commit_number, EntryRows rows) {
  const SqlValue hash = entry.content_hash ? SqlValue(static_cast<int64_t>(*entry.content_hash))
                                           : SqlValue(std::monostate());
  TARN_RETURN_IF_ERROR(sql.Execute(
      "INSERT INTO landing_file (dataset, key, etag, size_bytes, modified, content_hash, outcome, "
      "loaded, commit_number) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
      "ON CONFLICT (dataset, key) DO UPDATE SET "
      "etag = excluded.etag, size_bytes = excluded.size_bytes, modified = excluded.modified, "
      "content_hash = excluded.content_hash, outcome = excluded.outcome, loaded = excluded.loaded, "
      "commit_number = CASE WHEN ?10 = 1 THEN excluded.commit_number ELSE "
      "landing_file.commit_number END",
      {std::string(dataset), entry.key, entry.version.etag,
       static_cast<int64_t>(entry.version.size_bytes), ToMicros(entry.version.modified), hash,
       std::string(source::files::FileOutcomeName(entry.outcome)),
       static_cast<int64_t>(entry.loaded), commit_number,
       static_cast<int64_t>(rows == EntryRows::kOfThisCommit)}));
  return Status::Ok();
}

}  // namespace

std::vector<metastore::Migration> Migrations() {
  return {{"landing", 1, std::string(kSchema)},
          {"landing", 2, std::string(kCommitNumbers)},
          {"landing", 3, std::string(kSourceKeys)},
          {"landing", 4, std::string(kKafkaOffsets)},
          {"landing", 5, std::string(kSeenMessages)},
          {"landing", 6, std::string(kRecordedOffsets)}};
}

std::string EncodePositions(const LandingPositions& positions) {
  nlohmann::json json{{"commit", positions.commit_number}};
  if (positions.complete_until) {
    json["complete_until"] = ToMicros(*positions.complete_until);
  }
  if (positions.resume) {
    json["resume"] = ToJson(*positions.resume);
  }
  return json.dump();
}

Result<std::optional<LandingPositions>> DecodePositions(std::string_view record_json) {
  const nlohmann::json record =
      nlohmann::json::parse(record_json, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("positions")) {
    return std::optional<LandingPositions>();
  }
  const nlohmann::json& json = record["positions"];
  const bool readable =
      json.is_object() && json.contains("commit") && json["commit"].is_number_integer() &&
      (!json.contains("complete_until") || json["complete_until"].is_number_integer());
  if (!readable) {
    return Status::Corruption("positions of a transaction are unreadable: " + json.dump());
  }
  LandingPositions positions{
      .commit_number = json["commit"].get<int64_t>(), .complete_until = {}, .resume = {}};
  if (json.contains("complete_until")) {
    positions.complete_until = FromMicros(json["complete_until"].get<int64_t>());
  }
  if (json.contains("resume")) {
    TARN_ASSIGN_OR_RETURN(positions.resume, ResumeOf(json["resume"]));
  }
  return std::optional(std::move(positions));
}

Result<std::optional<LandingState>> ReadState(SqlTransaction& sql, std::string_view dataset) {
  std::optional<LandingState> state;
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT first_start, complete_until, resume, columns, source, commit_number, "
                "source_keys, cluster FROM landing_state WHERE dataset = ?1",
                {std::string(dataset)}, [&](const SqlRow& row) -> Result<RowAction> {
                  LandingState read;
                  read.first_start = FromMicros(row.Int(0));
                  read.source = row.Text(4);
                  read.commit_number = row.Int(5);
                  read.cluster = row.Text(7);
                  if (!row.IsNull(1)) {
                    read.ledger.complete_until = FromMicros(row.Int(1));
                  }
                  if (!row.IsNull(2)) {
                    TARN_ASSIGN_OR_RETURN(read.ledger.resume, DecodeResume(row.Text(2)));
                  }
                  if (!row.Text(3).empty()) {
                    TARN_ASSIGN_OR_RETURN(read.columns, format::DecodeColumnSet(row.Text(3)));
                  }
                  TARN_ASSIGN_OR_RETURN(read.keys, SourceKeys::Decode(row.Text(6)));
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

Result<SourceKeys> ReadKeys(SqlTransaction& sql, std::string_view dataset) {
  SourceKeys keys;
  TARN_RETURN_IF_ERROR(sql.Query("SELECT source_keys FROM landing_state WHERE dataset = ?1",
                                 {std::string(dataset)},
                                 [&](const SqlRow& row) -> Result<RowAction> {
                                   TARN_ASSIGN_OR_RETURN(keys, SourceKeys::Decode(row.Text(0)));
                                   return RowAction::kStop;
                                 }));
  return keys;
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
    TARN_RETURN_IF_ERROR(
        WriteEntry(sql, dataset, entry, change.commit_number, EntryRows::kOfThisCommit));
  }
  for (const LedgerEntry& entry : change.touched) {
    TARN_RETURN_IF_ERROR(
        WriteEntry(sql, dataset, entry, change.commit_number, EntryRows::kOfBefore));
  }
  TARN_ASSIGN_OR_RETURN(
      const int64_t updated,
      sql.Execute("UPDATE landing_state SET complete_until = coalesce(?1, complete_until), resume "
                  "= ?2, columns = ?3, commit_number = ?4, source_keys = ?5 WHERE dataset = ?6",
                  {TimeValue(change.complete_until), ResumeValue(change.resume),
                   format::EncodeColumnSet(change.columns), change.commit_number,
                   change.keys.Encode(), std::string(dataset)}));
  if (updated != 1) {
    return Status::NotFound("the landing task of " + std::string(dataset) + " was never started");
  }
  return Status::Ok();
}

Status WriteCluster(SqlTransaction& sql, std::string_view dataset, std::string_view cluster) {
  TARN_RETURN_IF_ERROR(sql.Execute("UPDATE landing_state SET cluster = ?1 WHERE dataset = ?2",
                                   {std::string(cluster), std::string(dataset)}));
  return Status::Ok();
}

Result<int64_t> GoBack(SqlTransaction& sql, std::string_view dataset,
                       const LandingPositions& positions) {
  TARN_ASSIGN_OR_RETURN(
      const int64_t forgotten,
      sql.Execute("DELETE FROM landing_file WHERE dataset = ?1 AND commit_number > ?2",
                  {std::string(dataset), positions.commit_number}));
  TARN_RETURN_IF_ERROR(
      sql.Execute("DELETE FROM landing_removal WHERE dataset = ?1 AND key NOT IN (SELECT f.key "
                  "FROM landing_file AS f WHERE f.dataset = ?1)",
                  {std::string(dataset)}));
  TARN_RETURN_IF_ERROR(
      sql.Execute("UPDATE landing_state SET complete_until = ?1, resume = ?2, commit_number = ?3 "
                  "WHERE dataset = ?4",
                  {TimeValue(positions.complete_until), ResumeValue(positions.resume),
                   positions.commit_number, std::string(dataset)}));
  return forgotten;
}

Result<std::vector<LedgerEntry>> ReadRemovals(SqlTransaction& sql, std::string_view dataset,
                                              std::string_view after) {
  std::vector<LedgerEntry> entries;
  TARN_RETURN_IF_ERROR(sql.Query(
      std::string(kFileColumns) +
          "JOIN landing_removal AS r ON r.dataset = f.dataset AND r.key = f.key WHERE f.dataset = "
          "?1 AND f.key > ?2 ORDER BY f.key LIMIT 1000",
      {std::string(dataset), std::string(after)}, [&](const SqlRow& row) -> Result<RowAction> {
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
