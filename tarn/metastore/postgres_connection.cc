#include "tarn/metastore/postgres_connection.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "tarn/base/hash.h"
#include "tarn/base/utf8.h"
#include "tarn/metastore/postgres_database.h"
#include "tarn/metastore/postgres_sql.h"

namespace tarn::metastore {

namespace {

constexpr int kServerVersionMin = 120'000;
constexpr const char* kSavepoint = "SAVEPOINT statement";
constexpr const char* kRelease = "RELEASE SAVEPOINT statement";
constexpr const char* kUndo = "ROLLBACK TO SAVEPOINT statement; RELEASE SAVEPOINT statement";

// Types of PostgreSQL by their fixed numbers.
constexpr Oid kBool = 16;
constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kText = 25;
constexpr Oid kFloat8 = 701;

ErrorCode CodeOf(std::string_view state, PostgresRole role) {
  const std::string_view family = state.substr(0, 2);
  if (state == "23505") {
    return ErrorCode::kAlreadyExists;
  }
  if (family == "23" || family == "22" || family == "54") {
    return ErrorCode::kInvalidArgument;  // Constraints, values out of range, rows too large.
  }
  if (state == "25006") {
    // A reader's transaction refuses writes: that is a bug of ours, not a state of the server.
    return role == PostgresRole::kReader ? ErrorCode::kInternal : ErrorCode::kUnavailable;
  }
  if (state == "53200") {
    return ErrorCode::kResourceExhausted;
  }
  // Lost connections, no resources, wrong state of an object (locked), the operator's doing, I/O
  // errors, conflicts with transactions of others, no rights.
  for (const std::string_view one : {"08", "53", "55", "57", "58", "40"}) {
    if (family == one) {
      return ErrorCode::kUnavailable;
    }
  }
  if (state == "42501" || state.empty()) {
    return ErrorCode::kUnavailable;
  }
  return family == "XX" && state != "XX000" ? ErrorCode::kCorruption : ErrorCode::kInternal;
}

// What a person should do, for failures of the server.
std::string_view AdviceFor(std::string_view state) {
  if (state.starts_with("40")) {
    return "; nothing was changed, try again";
  }
  if (state == "55P03") {
    return "; another server or session holds the lock, nothing was changed, try again";
  }
  if (state == "53100") {
    return "; free space on the database's disk, nothing was changed";
  }
  if (state == "25006") {
    return "; this is a standby, or the role is set to read only: name the primary server";
  }
  if (state == "42501") {
    return "; the role must own its schema or be granted USAGE and CREATE on it";
  }
  return "";
}

std::string Shortened(std::string_view sql) {
  constexpr size_t kLengthMax = 200;
  return std::string(sql.substr(0, kLengthMax)) + (sql.size() > kLengthMax ? "…" : "");
}

// The first line of what libpq says, which has no values in it.
std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

using Conninfo = std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)>;

Result<Conninfo> ParseUrl(const std::string& url) {
  char* error = nullptr;
  Conninfo parsed(PQconninfoParse(url.c_str(), &error), &PQconninfoFree);
  PQfreemem(error);  // Repeats the text, and with it a password.
  const bool scheme = url.starts_with("postgresql://") || url.starts_with("postgres://");
  if (parsed == nullptr || !scheme) {
    return Status::InvalidArgument(
        "the metastore's URL cannot be read: expected postgresql://USER@HOST:PORT/DATABASE");
  }
  return parsed;
}

std::string_view PartOf(const Conninfo& parsed, std::string_view keyword) {
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->keyword == keyword && option->val != nullptr) {
      return option->val;
    }
  }
  return {};
}

Oid TypeOf(const SqlValue& value) {
  struct Visitor {
    Oid operator()(std::monostate) const { return 0; }  // From where it stands.
    Oid operator()(int64_t) const { return kInt8; }
    Oid operator()(double) const { return kFloat8; }
    Oid operator()(const std::string&) const { return kText; }
    Oid operator()(const Blob&) const { return kBytea; }
  };
  return std::visit(Visitor{}, value);
}

Status CheckTexts(std::string_view sql, const SqlArguments& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* text = std::get_if<std::string>(&arguments[i]);
    if (text == nullptr) {
      continue;
    }
    const bool has_nul = text->find('\0') != std::string::npos;
    if (has_nul || !IsValidUtf8(*text)) {
      return Status::InvalidArgument(
          fmt::format("a text of the metastore on PostgreSQL must {}: argument {} of {}",
                      has_nul ? "have no NUL" : "be UTF-8", i + 1, Shortened(sql)));
    }
  }
  return {};
}

}  // namespace

// A statement of one text and one list of argument types.
struct PostgresConnection::Prepared {
  std::string name;
  std::string sql;  // As the room wrote it.
  PostgresStatement statement;
  std::vector<Oid> types;
  bool ready = false;  // The server has it.
};

// A query whose rows are being given out. At most one has its rows on the wire.
struct PostgresConnection::Stream {
  std::deque<ResultPointer> kept;
};

class PostgresConnection::RowOf final : public SqlRow {
 public:
  RowOf(const PGresult* result, int row) : result_(result), row_(row) {}
  [[nodiscard]] int column_count() const override { return PQnfields(result_); }
  [[nodiscard]] bool IsNull(int column) const override {
    return PQgetisnull(result_, row_, column) != 0;
  }
  [[nodiscard]] int64_t Int(int column) const override {
    const char* text = PQgetvalue(result_, row_, column);
    switch (PQftype(result_, column)) {
      case kBool:
        return *text == 't' ? 1 : 0;
      case kFloat8:
        return static_cast<int64_t>(std::strtod(text, nullptr));
      default:
        return std::strtoll(text, nullptr, 10);
    }
  }
  [[nodiscard]] double Real(int column) const override {
    return PQftype(result_, column) == kBool
               ? static_cast<double>(Int(column))
               : std::strtod(PQgetvalue(result_, row_, column), nullptr);
  }
  [[nodiscard]] std::string_view Text(int column) const override {
    const std::string_view text(PQgetvalue(result_, row_, column),
                                static_cast<size_t>(PQgetlength(result_, row_, column)));
    const Oid type = PQftype(result_, column);
    if (type == kBool && !text.empty()) {
      return text == "t" ? "1" : "0";
    }
    if (type != kBytea || text.empty()) {
      return text;
    }
    // "\x6162". Asked for again, the bytes stay where they are.
    const auto found = std::find_if(bytes_.begin(), bytes_.end(),
                                    [&](const auto& b) { return b.first == column; });
    if (found != bytes_.end()) {
      return found->second;
    }
    Result<std::string> bytes = DecodeHex(text.substr(2));
    TARN_CHECK(bytes.ok());  // bytea_output is set when the connection is made.
    return bytes_.emplace_back(column, *std::move(bytes)).second;
  }

 private:
  const PGresult* result_;
  int row_;
  mutable std::deque<std::pair<int, std::string>> bytes_;
};

Result<std::string> ShownPostgresUrl(const std::string& url) {
  TARN_ASSIGN_OR_RETURN(const Conninfo parsed, ParseUrl(url));
  const auto either = [&](std::string_view keyword, std::string_view otherwise) {
    const std::string_view part = PartOf(parsed, keyword);
    return std::string(part.empty() ? otherwise : part);
  };
  return fmt::format("postgresql://{}:{}/{}", either("host", "localhost"), either("port", "5432"),
                     either("dbname", ""));
}

Status CheckPostgresUrl(const std::string& url) { return ParseUrl(url).status(); }

bool HoldsPassword(const std::string& url) {
  const Result<Conninfo> parsed = ParseUrl(url);
  return parsed.ok() &&
         (!PartOf(*parsed, "password").empty() || !PartOf(*parsed, "sslpassword").empty());
}

PostgresConnection::PostgresConnection(pg_conn* handle, PostgresConnectionOptions options,
                                       std::string shown)
    : handle_(handle), options_(std::move(options)), shown_(std::move(shown)) {}

PostgresConnection::~PostgresConnection() { PQfinish(handle_); }

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(
    const PostgresConnectionOptions& options) {
  TARN_ASSIGN_OR_RETURN(std::string shown, ShownPostgresUrl(options.url));
  // What comes later wins, so the URL may say otherwise, but for the encoding.
  const std::array<const char*, 10> keywords = {"connect_timeout",
                                                "keepalives_idle",
                                                "keepalives_interval",
                                                "keepalives_count",
                                                "tcp_user_timeout",
                                                "fallback_application_name",
                                                "dbname",
                                                "client_encoding",
                                                nullptr,
                                                nullptr};
  const std::array<const char*, 10> values = {
      "10", "10", "5", "3", "30000", "tarn", options.url.c_str(), "UTF8", nullptr, nullptr};
  pg_conn* handle = PQconnectdbParams(keywords.data(), values.data(), /*expand_dbname=*/1);
  std::unique_ptr<PostgresConnection> connection(
      new PostgresConnection(handle, options, std::move(shown)));
  if (PQstatus(handle) != CONNECTION_OK) {
    return connection->Lost("connecting");
  }
  PQsetNoticeProcessor(handle, [](void*, const char*) {}, nullptr);
  TARN_RETURN_IF_ERROR(connection->Configure());
  return connection;
}

Status PostgresConnection::Configure() {
  if (PQserverVersion(handle_) < kServerVersionMin) {
    return Status::FailedPrecondition(
        fmt::format("metastore {}: PostgreSQL 12 or later is needed, found {}", shown_,
                    PQserverVersion(handle_) / 10'000));
  }
  const char* encoding = PQparameterStatus(handle_, "server_encoding");
  if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
    return Status::FailedPrecondition(
        fmt::format("metastore {}: the database's encoding is {}; make it with ENCODING 'UTF8'",
                    shown_, encoding == nullptr ? "unknown" : encoding));
  }
  TARN_RETURN_IF_ERROR(RunScript(fmt::format(
      "SET bytea_output = hex; SET standard_conforming_strings = on; SET lock_timeout = {}; "
      "SET idle_in_transaction_session_timeout = {}; SELECT set_config('synchronous_commit', 'on', "
      "false) WHERE current_setting('synchronous_commit') = 'off'",
      options_.lock_wait_max.count(), options_.idle_transaction_max.count())));
  TARN_RETURN_IF_ERROR(Query("SELECT current_schema()", {}, [&](const SqlRow& row) {
    schema_ = row.Text(0);
    return Result<RowAction>(RowAction::kContinue);
  }));
  if (schema_.empty()) {
    return Status::FailedPrecondition(
        fmt::format("metastore {}: no schema of the search path exists, or the role may not use "
                    "it: create one, or name it by ?options=-csearch_path%3DNAME",
                    shown_));
  }
  changed_ = false;
  return {};
}

bool PostgresConnection::InTransaction() const {
  const PGTransactionStatusType status = PQtransactionStatus(handle_);
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR || status == PQTRANS_ACTIVE;
}

bool PostgresConnection::HasFailed() const {
  return PQtransactionStatus(handle_) == PQTRANS_INERROR || IsLost();
}

bool PostgresConnection::IsLost() const { return PQstatus(handle_) != CONNECTION_OK; }

bool PostgresConnection::TakeChanged() { return std::exchange(changed_, false); }

Status PostgresConnection::Lost(std::string_view doing) const {
  return Status::Unavailable(
      fmt::format("metastore {}: {}: {}", shown_, doing, FirstLine(PQerrorMessage(handle_))));
}

Status PostgresConnection::Failure(const pg_result* result, std::string_view doing) const {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (state == nullptr || message == nullptr) {
    // libpq's own words: the connection is lost, or it was used wrongly.
    return IsLost() ? Lost(doing)
                    : Status::Internal(fmt::format("metastore {}: {}: {}", shown_, doing,
                                                   FirstLine(PQerrorMessage(handle_))));
  }
  return {CodeOf(state, options_.role), fmt::format("metastore {}: {}: {} (SQLSTATE {}){}", shown_,
                                                    doing, message, state, AdviceFor(state))};
}

PostgresConnection::ResultPointer PostgresConnection::Receive() {
  return {PQgetResult(handle_), &PQclear};
}

void PostgresConnection::KeepRest() {
  Stream* stream = std::exchange(on_wire_, nullptr);
  if (stream == nullptr) {
    return;
  }
  while (ResultPointer result = Receive()) {
    stream->kept.push_back(std::move(result));
  }
}

Status PostgresConnection::RunScript(const std::string& sql) {
  KeepRest();
  changed_ = true;
  const ResultPointer result(PQexec(handle_, sql.c_str()), &PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY) {
    // A failed transaction that is told to commit rolls back, without an error.
    if (std::string_view(PQcmdStatus(result.get())) == "ROLLBACK" && sql.ends_with("COMMIT")) {
      return Status::Unavailable(
          fmt::format("metastore {}: the transaction was rolled back", shown_));
    }
    return {};
  }
  return result == nullptr ? Lost(Shortened(sql)) : Failure(result.get(), Shortened(sql));
}

Result<PostgresConnection::Prepared*> PostgresConnection::Describe(std::string_view sql,
                                                                   const SqlArguments& arguments) {
  std::string key;
  key.reserve(sql.size() + arguments.size() + 1);
  for (const SqlValue& value : arguments) {
    key += static_cast<char>('0' + value.index());
  }
  key += ' ';
  key += sql;
  const auto found = statements_.find(key);
  if (found != statements_.end()) {
    return found->second.get();
  }
  auto prepared = std::make_unique<Prepared>();
  prepared->sql = sql;
  prepared->statement = TranslateStatement(sql);
  if (static_cast<size_t>(prepared->statement.arguments) != arguments.size()) {
    return Status::Internal(fmt::format("SQL takes {} arguments, found {}: {}",
                                        prepared->statement.arguments, arguments.size(),
                                        Shortened(sql)));
  }
  if (statements_.size() >= options_.statements_max) {
    TARN_RETURN_IF_ERROR(RunScript("DEALLOCATE ALL"));
    statements_.clear();
  }
  prepared->name = "s" + std::to_string(++names_);
  for (const SqlValue& value : arguments) {
    prepared->types.push_back(TypeOf(value));
  }
  return statements_.emplace(std::move(key), std::move(prepared)).first->second.get();
}

bool PostgresConnection::SendPrepare(const Prepared& prepared) {
  return PQsendPrepare(handle_, prepared.name.c_str(), prepared.statement.text.c_str(),
                       static_cast<int>(prepared.types.size()), prepared.types.data()) == 1;
}

bool PostgresConnection::SendPrepared(const Prepared& prepared, const SqlArguments& arguments) {
  const size_t count = arguments.size();
  std::vector<std::string> numbers(count);
  std::vector<const char*> values(count, nullptr);
  std::vector<int> lengths(count, 0);
  std::vector<int> formats(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const SqlValue& value = arguments[i];
    if (const auto* blob = std::get_if<Blob>(&value)) {
      values[i] = blob->bytes.data();
      lengths[i] = static_cast<int>(blob->bytes.size());
      formats[i] = 1;
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      values[i] = text->c_str();
    } else if (const auto* number = std::get_if<int64_t>(&value)) {
      numbers[i] = std::to_string(*number);
      values[i] = numbers[i].c_str();
    } else if (const auto* real = std::get_if<double>(&value)) {
      numbers[i] = fmt::format("{}", *real);
      values[i] = numbers[i].c_str();
    }
  }
  return PQsendQueryPrepared(handle_, prepared.name.c_str(), static_cast<int>(count), values.data(),
                             lengths.data(), formats.data(), /*resultFormat=*/0) == 1;
}

// SAVEPOINT, the statement, RELEASE: sent together, answered together.
Result<PostgresConnection::ResultPointer> PostgresConnection::RunChange(
    Prepared& prepared, const SqlArguments& arguments) {
  KeepRest();
  changed_ = true;
  const std::string doing = Shortened(prepared.sql);
  const auto send_plain = [&](const char* sql) {
    return PQsendQueryParams(handle_, sql, 0, nullptr, nullptr, nullptr, nullptr, 0) == 1;
  };
  if (PQenterPipelineMode(handle_) != 1) {
    return Lost(doing);
  }
  if (!send_plain(kSavepoint) || (!prepared.ready && !SendPrepare(prepared)) ||
      !SendPrepared(prepared, arguments) || !send_plain(kRelease) || PQpipelineSync(handle_) != 1) {
    return Lost(doing);
  }
  const int wanted_at = prepared.ready ? 1 : 2;
  ResultPointer wanted(nullptr, &PQclear);
  Status failure;
  for (int at = 0; at < wanted_at + 2; ++at) {
    ResultPointer result = Receive();
    if (result == nullptr || IsLost()) {
      return result == nullptr ? Lost(doing) : Failure(result.get(), doing);
    }
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
      prepared.ready = prepared.ready || at == 1;
    } else if (failure.ok()) {
      failure = status == PGRES_EMPTY_QUERY
                    ? Status::Internal("not exactly one SQL statement: " + doing)
                    : Failure(result.get(), doing);
    }
    if (at == wanted_at) {
      wanted = std::move(result);
    }
    while (Receive() != nullptr) {
    }
  }
  const ResultPointer synced = Receive();
  if (synced == nullptr || PQresultStatus(synced.get()) != PGRES_PIPELINE_SYNC ||
      PQexitPipelineMode(handle_) != 1) {
    return Lost(doing);
  }
  if (failure.ok()) {
    return wanted;
  }
  if (HasFailed() && (failure.code() == ErrorCode::kAlreadyExists ||
                      failure.code() == ErrorCode::kInvalidArgument)) {
    TARN_RETURN_IF_ERROR(RunScript(kUndo));
  }
  return failure;
}

Result<int64_t> PostgresConnection::Execute(std::string_view sql, const SqlArguments& arguments) {
  TARN_ASSIGN_OR_RETURN(Prepared * prepared, Describe(sql, arguments));
  TARN_RETURN_IF_ERROR(CheckTexts(sql, arguments));
  if (!prepared->statement.changes) {
    TARN_RETURN_IF_ERROR(StreamRows(*prepared, arguments, [](const SqlRow&) {
      return Result<RowAction>(RowAction::kContinue);
    }));
    return 0;
  }
  TARN_ASSIGN_OR_RETURN(const ResultPointer result, RunChange(*prepared, arguments));
  // Empty for statements that do not count.
  return std::strtoll(PQcmdTuples(result.get()), nullptr, 10);
}

Status PostgresConnection::Query(std::string_view sql, const SqlArguments& arguments,
                                 const RowCallback& row) {
  TARN_ASSIGN_OR_RETURN(Prepared * prepared, Describe(sql, arguments));
  TARN_RETURN_IF_ERROR(CheckTexts(sql, arguments));
  if (!prepared->statement.changes) {
    return StreamRows(*prepared, arguments, row);
  }
  TARN_ASSIGN_OR_RETURN(const ResultPointer result, RunChange(*prepared, arguments));
  for (int i = 0; i < PQntuples(result.get()); ++i) {
    TARN_ASSIGN_OR_RETURN(const RowAction action, row(RowOf(result.get(), i)));
    if (action == RowAction::kStop) {
      break;
    }
  }
  return {};
}

Status PostgresConnection::StreamRows(Prepared& prepared, const SqlArguments& arguments,
                                      const RowCallback& row) {
  KeepRest();
  const std::string doing = Shortened(prepared.sql);
  if (!prepared.ready) {
    const ResultPointer made(
        PQprepare(handle_, prepared.name.c_str(), prepared.statement.text.c_str(),
                  static_cast<int>(prepared.types.size()), prepared.types.data()),
        &PQclear);
    if (PQresultStatus(made.get()) != PGRES_COMMAND_OK) {
      return made == nullptr ? Lost(doing) : Failure(made.get(), doing);
    }
    prepared.ready = true;
  }
  if (!SendPrepared(prepared, arguments)) {
    return Lost(doing);
  }
  PQsetSingleRowMode(handle_);
  Stream stream;
  on_wire_ = &stream;
  // Also when `row` throws: the next statement must find the wire empty.
  struct Rest {
    PostgresConnection& connection;
    Stream* stream;
    ~Rest() {
      if (connection.on_wire_ == stream) {
        connection.on_wire_ = nullptr;
        while (connection.Receive() != nullptr) {
        }
      }
    }
  } const rest{*this, &stream};
  while (true) {
    ResultPointer result(nullptr, &PQclear);
    if (on_wire_ == &stream) {
      result = Receive();
    } else if (!stream.kept.empty()) {
      result = std::move(stream.kept.front());
      stream.kept.pop_front();
    }
    if (result == nullptr) {
      return {};
    }
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_SINGLE_TUPLE) {
      TARN_ASSIGN_OR_RETURN(const RowAction action, row(RowOf(result.get(), 0)));
      if (action == RowAction::kStop) {
        return {};
      }
    } else if (status == PGRES_EMPTY_QUERY) {
      return Status::Internal("not exactly one SQL statement: " + doing);
    } else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      return Failure(result.get(), doing);
    }
  }
}

Status PostgresConnection::BeginRead() {
  return RunScript("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
}

Result<int64_t> PostgresConnection::LastInsertId() {
  int64_t id = 0;
  TARN_RETURN_IF_ERROR(Query("SELECT lastval()", {}, [&](const SqlRow& row) {
    id = row.Int(0);
    return Result<RowAction>(RowAction::kContinue);
  }));
  return id;
}

}  // namespace tarn::metastore
