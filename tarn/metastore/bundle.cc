#include "tarn/metastore/bundle.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tarn/base/hash.h"
#include "tarn/base/utf8.h"
#include "tarn/metastore/bundle_tables.h"
#include "tarn/metastore/migrations.h"
#include "tarn/metastore/published_file.h"

namespace tarn::metastore {

namespace {

using nlohmann::json;

constexpr int kFormatVersion = 1;
constexpr std::string_view kFormat = "tarn-metastore";

json ValueAt(const SqlRow& row, int type, int value) {
  const std::string_view kind = row.Text(type);
  if (kind == "null") {
    return nullptr;
  }
  if (kind == "integer") {
    return row.Int(value);
  }
  if (kind == "real") {
    return row.Real(value);
  }
  const std::string_view bytes = row.Text(value);
  if (kind == "blob") {
    return {{"blob", EncodeBase64(bytes)}};
  }
  return IsValidUtf8(bytes) ? json(bytes) : json{{"text", EncodeBase64(bytes)}};
}

// A file that gets its name when it is whole.
class BundleFile {
 public:
  static Result<std::unique_ptr<BundleFile>> Create(const std::filesystem::path& file) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) {
      return Status(ErrorCode::kAlreadyExists,
                    fmt::format("{} is there already: name another file", file.string()));
    }
    const std::string part = file.string() + ".part";
    const int descriptor = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0) {
      return Failed("create", part);
    }
    return std::unique_ptr<BundleFile>(new BundleFile(descriptor, part, file));
  }
  ~BundleFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
      ::unlink(part_.c_str());
    }
  }
  BundleFile(const BundleFile&) = delete;
  BundleFile& operator=(const BundleFile&) = delete;

  Status WriteLine(const json& line, Xxh3Stream* table = nullptr) {
    const std::string text = line.dump() + "\n";
    all_.Update(text);
    if (table != nullptr) {
      table->Update(text);
    }
    buffer_ += text;
    return buffer_.size() < kBufferBytes ? Status::Ok() : Flush();
  }

  // The last line, which is not part of its own checksum.
  Status Finish(int64_t tables) {
    TARN_RETURN_IF_ERROR(WriteLine({{"tables", tables}, {"checksum", FormatXxh3(all_.Digest())}}));
    TARN_RETURN_IF_ERROR(Flush());
    ::close(std::exchange(descriptor_, -1));
    return PublishFile(part_, file_);
  }

 private:
  static constexpr size_t kBufferBytes = 1 << 20;

  BundleFile(int descriptor, std::string part, std::filesystem::path file)
      : descriptor_(descriptor), part_(std::move(part)), file_(std::move(file)) {}

  static Status Failed(const char* verb, const std::string& name) {
    return Status::Unavailable(
        fmt::format("cannot {} {}: {}", verb, name, std::generic_category().message(errno)));
  }

  Status Flush() {
    std::string_view left = buffer_;
    while (!left.empty()) {
      const ssize_t written = ::write(descriptor_, left.data(), left.size());
      if (written < 0 && errno != EINTR) {
        return Failed("write", part_);
      }
      left.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
    }
    buffer_.clear();
    return Status::Ok();
  }

  int descriptor_;
  std::string part_;
  std::filesystem::path file_;
  std::string buffer_;
  Xxh3Stream all_;
};

Result<int64_t> WriteTable(SqlTransaction& sql, const BundleTables& tables,
                           const std::string& table, BundleFile& out) {
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> columns, tables.ReadColumns(sql, table));
  TARN_RETURN_IF_ERROR(out.WriteLine({{"table", table}, {"columns", columns}}));
  Xxh3Stream checksum;
  int64_t rows = 0;
  TARN_RETURN_IF_ERROR(
      sql.Query(tables.SelectText(table, columns), {}, [&](const SqlRow& row) -> Result<RowAction> {
        json values = json::array();
        for (int i = 0; i < row.column_count(); i += 2) {
          values.push_back(ValueAt(row, i, i + 1));
        }
        ++rows;
        TARN_RETURN_IF_ERROR(out.WriteLine(values, &checksum));
        return RowAction::kContinue;
      }));
  TARN_RETURN_IF_ERROR(
      out.WriteLine({{"rows", rows}, {"checksum", FormatXxh3(checksum.Digest())}}));
  return rows;
}

Status WriteHead(SqlTransaction& sql, BundleFile& out) {
  json migrations = json::array();
  TARN_RETURN_IF_ERROR(
      sql.Query("SELECT room, version, hash FROM tarn_migrations ORDER BY room, version", {},
                [&](const SqlRow& row) {
                  migrations.push_back(
                      {{"room", row.Text(0)}, {"version", row.Int(1)}, {"hash", row.Text(2)}});
                  return Result<RowAction>(RowAction::kContinue);
                }));
  return out.WriteLine(
      {{"format", kFormat}, {"version", kFormatVersion}, {"migrations", std::move(migrations)}});
}

// The lines of a bundle, checked as they are read.
class BundleReader {
 public:
  static Result<std::unique_ptr<BundleReader>> Open(const std::filesystem::path& file) {
    auto reader = std::make_unique<BundleReader>(file);
    return reader->in_.is_open()
               ? Result<std::unique_ptr<BundleReader>>(std::move(reader))
               : Status::NotFound(fmt::format("cannot open the bundle {}", file.string()));
  }
  explicit BundleReader(const std::filesystem::path& file)
      : name_(file.string()), in_(file, std::ios::binary) {}

  Result<json> Next() {
    std::string text;
    ++line_;
    if (!std::getline(in_, text) || in_.eof()) {
      return Damaged("the file ends here: it is not whole");
    }
    text += '\n';
    before_ = all_.Digest();
    all_.Update(text);
    last_ = std::move(text);
    json parsed = json::parse(last_, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_discarded()) {
      return Damaged("no JSON");
    }
    return parsed;
  }
  [[nodiscard]] bool IsAtEnd() { return in_.peek() == std::ifstream::traits_type::eof(); }
  // The line that Next read.
  [[nodiscard]] const std::string& last() const { return last_; }
  // Of all lines before it.
  [[nodiscard]] std::string ChecksumBefore() const { return FormatXxh3(before_); }
  [[nodiscard]] Status Damaged(std::string_view what) const {
    return Status::Corruption(fmt::format("bundle {}, line {}: {}", name_, line_, what));
  }

 private:
  std::string name_;
  std::ifstream in_;
  int64_t line_ = 0;
  std::string last_;
  Xxh3Stream all_;
  uint64_t before_ = 0;
};

// The steps of `wanted` that the bundle's metastore had taken.
Result<std::vector<Migration>> TakenSteps(const json& head, const BundleReader& reader,
                                          const std::vector<Migration>& wanted) {
  if (!head.is_object() || head.value("format", json()) != json(kFormat) ||
      !head.value("migrations", json()).is_array()) {
    return reader.Damaged("this is no bundle of a metastore");
  }
  if (head.value("version", json()) != json(kFormatVersion)) {
    return Status::FailedPrecondition(
        fmt::format("the bundle has version {} of the form, this program reads {}: use the newer "
                    "program",
                    head.value("version", json()).dump(), kFormatVersion));
  }
  std::vector<AppliedMigration> applied;
  std::map<std::string, int> newest;
  for (const json& step : head["migrations"]) {
    if (!step.is_object() || !step.value("room", json()).is_string() ||
        !step.value("version", json()).is_number_integer() ||
        !step.value("hash", json()).is_string()) {
      return reader.Damaged("a migration has room, version and hash");
    }
    applied.push_back({.room = step["room"].get<std::string>(),
                       .version = step["version"].get<int>(),
                       .hash = step["hash"].get<std::string>()});
    int& version = newest[applied.back().room];
    version = std::max(version, applied.back().version);
  }
  TARN_RETURN_IF_ERROR(StatusOf(PlanMigrations(applied, wanted)));  // Checks hashes and versions.
  std::vector<Migration> taken;
  for (const Migration& step : wanted) {
    const auto found = newest.find(step.room);
    if (found != newest.end() && step.version <= found->second) {
      taken.push_back(step);
    }
    if (found != newest.end() && step.version == found->second) {
      newest.erase(found);
    }
  }
  if (!newest.empty()) {
    return Status::FailedPrecondition(
        fmt::format("the bundle has the room {}, which this program does not know: use the newer "
                    "program",
                    newest.begin()->first));
  }
  return taken;
}

Result<SqlValue> ValueOf(const json& value, const BundleReader& reader) {
  if (value.is_null()) {
    return SqlValue(std::monostate());
  }
  if (value.is_number_integer()) {
    return SqlValue(value.get<int64_t>());
  }
  if (value.is_number_float()) {
    return SqlValue(value.get<double>());
  }
  if (value.is_string()) {
    return SqlValue(value.get<std::string>());
  }
  for (const char* kind : {"blob", "text"}) {
    const auto found = value.is_object() ? value.find(kind) : value.end();
    if (value.is_object() && found != value.end() && found->is_string()) {
      Result<std::string> bytes = DecodeBase64(found->get<std::string>());
      if (!bytes.ok()) {
        return reader.Damaged(bytes.status().message());
      }
      return kind[0] == 'b' ? SqlValue(Blob{*std::move(bytes)}) : SqlValue(*std::move(bytes));
    }
  }
  return reader.Damaged("a value is null, a number, a text, {\"blob\"} or {\"text\"}");
}

Result<std::string> InsertText(SqlTransaction& sql, const BundleTables& tables,
                               const std::string& table, const json& columns,
                               const BundleReader& reader) {
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> known, tables.ReadColumns(sql, table));
  std::vector<std::string> named;
  for (const json& column : columns) {
    named.push_back(column.is_string() ? column.get<std::string>() : "");
    if (std::find(known.begin(), known.end(), named.back()) == known.end()) {
      return reader.Damaged(fmt::format("table {} has no column {}", table, column.dump()));
    }
  }
  return named.empty() ? Result<std::string>(reader.Damaged("a table has columns"))
                       : tables.InsertText(table, named);
}

// Reads the rows of one table, up to and with the line that ends them.
Result<int64_t> ReadTable(SqlTransaction& sql, const BundleTables& tables, const json& head,
                          BundleReader& reader) {
  const std::string table = head["table"].get<std::string>();
  TARN_ASSIGN_OR_RETURN(const std::vector<std::string> known, tables.ReadTables(sql));
  if (std::find(known.begin(), known.end(), table) == known.end()) {
    return reader.Damaged(fmt::format("there is no table {}", table));
  }
  TARN_ASSIGN_OR_RETURN(const std::string insert,
                        InsertText(sql, tables, table, head.value("columns", json()), reader));
  // A migration may have put rows there.
  TARN_RETURN_IF_ERROR(tables.Clear(sql, table));
  Xxh3Stream checksum;
  for (int64_t rows = 0;; ++rows) {
    TARN_ASSIGN_OR_RETURN(const json line, reader.Next());
    if (line.is_object()) {
      if (line.value("rows", json()) != json(rows) ||
          line.value("checksum", json()) != json(FormatXxh3(checksum.Digest()))) {
        return reader.Damaged(
            fmt::format("the rows of table {} are not those that were written: "
                        "found {} rows",
                        table, rows));
      }
      return rows;
    }
    if (!line.is_array() || line.size() != head["columns"].size()) {
      return reader.Damaged("a row has one value for each column");
    }
    checksum.Update(reader.last());
    SqlArguments values;
    for (const json& value : line) {
      TARN_ASSIGN_OR_RETURN(SqlValue one, ValueOf(value, reader));
      values.push_back(std::move(one));
    }
    TARN_RETURN_IF_ERROR(StatusOf(sql.Execute(insert, values)).WithContext("table " + table));
  }
}

Result<BundleSummary> ReadRows(SqlTransaction& sql, const BundleTables& tables,
                               BundleReader& reader) {
  // Tables come by name: a row may name one that comes later.
  TARN_RETURN_IF_ERROR(tables.BeginRows(sql));
  BundleSummary summary;
  while (true) {
    TARN_ASSIGN_OR_RETURN(const json line, reader.Next());
    if (line.is_object() && line.contains("tables")) {
      if (line["tables"] != json(summary.tables) ||
          line.value("checksum", json()) != json(reader.ChecksumBefore())) {
        return reader.Damaged("the bundle is not as it was written");
      }
      TARN_RETURN_IF_ERROR(tables.EndRows(sql));
      return reader.IsAtEnd() ? Result<BundleSummary>(summary)
                              : reader.Damaged("nothing may follow this line");
    }
    if (!line.is_object() || !line.value("table", json()).is_string()) {
      return reader.Damaged("a table is expected here");
    }
    TARN_ASSIGN_OR_RETURN(const int64_t rows, ReadTable(sql, tables, line, reader));
    ++summary.tables;
    summary.rows += rows;
  }
}

}  // namespace

Result<BundleSummary> ExportBundle(Database& database, const std::filesystem::path& file) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<BundleFile> out, BundleFile::Create(file));
  const BundleTables& tables = BundleTables::Of(database);
  BundleSummary summary;
  TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(WriteHead(sql, *out));
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> names, tables.ReadTables(sql));
    for (const std::string& table : names) {
      TARN_ASSIGN_OR_RETURN(const int64_t rows, WriteTable(sql, tables, table, *out));
      ++summary.tables;
      summary.rows += rows;
    }
    return Status::Ok();
  }));
  TARN_RETURN_IF_ERROR(out->Finish(summary.tables));
  return summary;
}

Result<BundleSummary> ImportBundle(const std::filesystem::path& file, Database& database,
                                   const std::vector<Migration>& wanted) {
  TARN_ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(file));
  const BundleTables& tables = BundleTables::Of(database);
  bool empty = false;
  TARN_RETURN_IF_ERROR(database.Read([&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(const std::vector<std::string> names, tables.ReadTables(sql));
    empty = names.empty();
    return Status::Ok();
  }));
  if (!empty) {
    return Status::FailedPrecondition("a bundle goes into an empty metastore only");
  }
  TARN_ASSIGN_OR_RETURN(const json head, reader->Next());
  TARN_ASSIGN_OR_RETURN(const std::vector<Migration> taken, TakenSteps(head, *reader, wanted));
  BundleSummary summary;
  TARN_RETURN_IF_ERROR(tables.MakeAndFill(database, taken, [&](SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(summary, ReadRows(sql, tables, *reader));
    return Status::Ok();
  }));
  TARN_RETURN_IF_ERROR(database.Migrate(wanted));
  return summary;
}

}  // namespace tarn::metastore
