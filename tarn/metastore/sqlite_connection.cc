#include "tarn/metastore/sqlite_connection.h"

#include <utility>
#include <vector>

#include <sqlite3.h>

namespace tarn::metastore {

namespace {

// "TARN": marks a file as ours, so that another program's database is never written to.
constexpr int64_t kApplicationId = 0x5441524E;

ErrorCode CodeOf(int code, ConnectionMode mode) {
  switch (code & 0xFF) {
    case SQLITE_CONSTRAINT:
      return code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY ||
                     code == SQLITE_CONSTRAINT_ROWID
                 ? ErrorCode::kAlreadyExists
                 : ErrorCode::kInvalidArgument;
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
      return ErrorCode::kInvalidArgument;
    case SQLITE_READONLY:
      // A reader's connection refuses writes: that is a bug of ours, not a state of the disk.
      return mode == ConnectionMode::kReader ? ErrorCode::kInternal : ErrorCode::kUnavailable;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_PROTOCOL:
      return ErrorCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::kCorruption;
    case SQLITE_NOMEM:
      return ErrorCode::kResourceExhausted;
    case SQLITE_INTERRUPT:
      return ErrorCode::kCancelled;
    default:
      return ErrorCode::kInternal;
  }
}

// What a person should do, for failures of the machine.
std::string_view AdviceFor(int code) {
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return "; free space on its disk, nothing was changed";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return "; make the file and its folder writable for this user";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "; another program holds a lock on it, close that program";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "; stop the server, keep a copy of the file with its -wal and -shm, then restore a "
             "backup or an export";
    default:
      return "";
  }
}

std::string Shortened(std::string_view sql) {
  constexpr size_t kLengthMax = 200;
  return std::string(sql.substr(0, kLengthMax)) + (sql.size() > kLengthMax ? "…" : "");
}

class RowOf final : public SqlRow {
 public:
  explicit RowOf(sqlite3_stmt* statement) : statement_(statement) {}
  [[nodiscard]] int column_count() const override { return sqlite3_column_count(statement_); }
  [[nodiscard]] bool IsNull(int column) const override {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }
  [[nodiscard]] int64_t Int(int column) const override {
    return sqlite3_column_int64(statement_, column);
  }
  [[nodiscard]] double Real(int column) const override {
    return sqlite3_column_double(statement_, column);
  }
  [[nodiscard]] std::string_view Text(int column) const override {
    // The pointer must be asked for before the size: asking may convert.
    const void* bytes = sqlite3_column_type(statement_, column) == SQLITE_BLOB
                            ? sqlite3_column_blob(statement_, column)
                            : static_cast<const void*>(sqlite3_column_text(statement_, column));
    if (bytes == nullptr) {
      return {};
    }
    return {static_cast<const char*>(bytes),
            static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_;
};

}  // namespace

// A prepared statement in use. Gives it back to the cache, or ends it if it is not in there.
class SqliteConnection::Use {
 public:
  Use(sqlite3_stmt* statement, Entry* entry) : statement_(statement), entry_(entry) {
    if (entry_ != nullptr) {
      entry_->in_use = true;
    }
  }
  Use(Use&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)),
        entry_(std::exchange(other.entry_, nullptr)) {}
  Use& operator=(Use&&) = delete;
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (statement_ == nullptr) {
      return;
    }
    if (entry_ == nullptr) {
      sqlite3_finalize(statement_);
      return;
    }
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
    entry_->in_use = false;
  }
  [[nodiscard]] sqlite3_stmt* statement() const { return statement_; }

 private:
  sqlite3_stmt* statement_;
  Entry* entry_;
};

SqliteConnection::SqliteConnection(sqlite3* handle, ConnectionOptions options)
    : handle_(handle), options_(std::move(options)) {}

SqliteConnection::~SqliteConnection() {
  for (auto& [sql, entry] : statements_) {
    sqlite3_finalize(entry.statement);
  }
  sqlite3_close_v2(handle_);
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const ConnectionOptions& options) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (options.mode == ConnectionMode::kWriter) {
    flags |= SQLITE_OPEN_CREATE;
  }
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(options.path.c_str(), &handle, flags,
                                   options.vfs.empty() ? nullptr : options.vfs.c_str());
  // The destructor also closes the half-open handle of a failure.
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(handle, options));
  if (code != SQLITE_OK) {
    return connection->Failure(code, "opening it");
  }
  TARN_RETURN_IF_ERROR(connection->Configure());
  return connection;
}

Status SqliteConnection::Configure() {
  sqlite3_busy_timeout(handle_, static_cast<int>(options_.busy_wait_max.count()));
  const std::string cache_kib = std::to_string(options_.cache_bytes / 1024);
  TARN_RETURN_IF_ERROR(RunScript(
      "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-" + cache_kib + ";"));
  if (options_.mode == ConnectionMode::kReader) {
    return RunScript("PRAGMA query_only=ON");
  }
  TARN_RETURN_IF_ERROR(CheckOwner());
  std::string mode;
  TARN_RETURN_IF_ERROR(Query("PRAGMA journal_mode=WAL", {}, [&](const SqlRow& row) {
    mode = row.Text(0);
    return Result<RowAction>(RowAction::kStop);
  }));
  if (mode != "wal") {
    return Status::FailedPrecondition("the file system of metastore " + options_.path.string() +
                                      " cannot hold a write-ahead log (journal mode stays " + mode +
                                      "); use a local disk");
  }
  return RunScript("PRAGMA synchronous=FULL; PRAGMA journal_size_limit=67108864;");
}

Status SqliteConnection::CheckOwner() {
  int64_t application_id = 0;
  int64_t table_count = 0;
  TARN_RETURN_IF_ERROR(Query("PRAGMA application_id", {}, [&](const SqlRow& row) {
    application_id = row.Int(0);
    return Result<RowAction>(RowAction::kStop);
  }));
  TARN_RETURN_IF_ERROR(Query("SELECT count(*) FROM sqlite_schema", {}, [&](const SqlRow& row) {
    table_count = row.Int(0);
    return Result<RowAction>(RowAction::kStop);
  }));
  if (application_id == kApplicationId) {
    return {};
  }
  if (application_id != 0 || table_count != 0) {
    return Status::FailedPrecondition("metastore " + options_.path.string() +
                                      " is a SQLite database of another program; choose another "
                                      "home or move that file away");
  }
  return RunScript("PRAGMA application_id=" + std::to_string(kApplicationId));
}

Status SqliteConnection::Failure(int code, std::string_view doing) const {
  std::string message = "metastore " + options_.path.string() + ": " + std::string(doing) + ": ";
  message += handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
  message += " (SQLite " + std::to_string(code) + ")";
  message += AdviceFor(code);
  return {CodeOf(code, options_.mode), std::move(message)};
}

Status SqliteConnection::RunScript(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : Failure(code, Shortened(sql));
}

Result<sqlite3_stmt*> SqliteConnection::Compile(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, &rest);
  if (code != SQLITE_OK) {
    return Failure(code, Shortened(sql));
  }
  const std::string_view tail = sql.substr(static_cast<size_t>(rest - sql.data()));
  if (statement == nullptr || tail.find_first_not_of(" \t\r\n;") != std::string_view::npos) {
    sqlite3_finalize(statement);
    return Status::Internal("not exactly one SQL statement: " + Shortened(sql));
  }
  return statement;
}

Result<SqliteConnection::Use> SqliteConnection::Prepare(std::string_view sql,
                                                        const SqlArguments& arguments) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    if (statements_.size() >= options_.statements_max) {
      DropIdleStatements();
    }
    TARN_ASSIGN_OR_RETURN(sqlite3_stmt * statement, Compile(sql));
    found = statements_.emplace(std::string(sql), Entry{.statement = statement}).first;
  }
  if (!found->second.in_use) {
    Use use(found->second.statement, &found->second);
    TARN_RETURN_IF_ERROR(Bind(use.statement(), sql, arguments));
    return use;
  }
  // The same text is running further up the stack: this call gets a statement of its own.
  TARN_ASSIGN_OR_RETURN(sqlite3_stmt * statement, Compile(sql));
  Use use(statement, nullptr);
  TARN_RETURN_IF_ERROR(Bind(use.statement(), sql, arguments));
  return use;
}

void SqliteConnection::DropIdleStatements() {
  std::erase_if(statements_, [](auto& item) {
    if (item.second.in_use) {
      return false;
    }
    sqlite3_finalize(item.second.statement);
    return true;
  });
}

Status SqliteConnection::Bind(sqlite3_stmt* statement, std::string_view sql,
                              const SqlArguments& arguments) {
  const int expected = sqlite3_bind_parameter_count(statement);
  if (static_cast<size_t>(expected) != arguments.size()) {
    return Status::Internal("SQL takes " + std::to_string(expected) + " arguments, found " +
                            std::to_string(arguments.size()) + ": " + Shortened(sql));
  }
  for (int i = 0; i < expected; ++i) {
    const SqlValue& value = arguments[static_cast<size_t>(i)];
    int code = SQLITE_OK;
    // Texts and blobs are not copied: the arguments outlive the call that steps the statement.
    if (const auto* number = std::get_if<int64_t>(&value)) {
      code = sqlite3_bind_int64(statement, i + 1, *number);
    } else if (const auto* real = std::get_if<double>(&value)) {
      code = sqlite3_bind_double(statement, i + 1, *real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      code = sqlite3_bind_text64(statement, i + 1, text->data(), text->size(), SQLITE_STATIC,
                                 SQLITE_UTF8);
    } else if (const auto* blob = std::get_if<Blob>(&value)) {
      code = sqlite3_bind_blob64(statement, i + 1, blob->bytes.data(), blob->bytes.size(),
                                 SQLITE_STATIC);
    } else {
      code = sqlite3_bind_null(statement, i + 1);
    }
    if (code != SQLITE_OK) {
      return Failure(code, Shortened(sql));
    }
  }
  return {};
}

Result<int64_t> SqliteConnection::Execute(std::string_view sql, const SqlArguments& arguments) {
  TARN_ASSIGN_OR_RETURN(const Use use, Prepare(sql, arguments));
  const int64_t total_before = sqlite3_total_changes64(handle_);
  int code = SQLITE_ROW;
  while (code == SQLITE_ROW) {
    code = sqlite3_step(use.statement());
  }
  if (code != SQLITE_DONE) {
    return Failure(code, Shortened(sql));
  }
  // The count of changes stays from the statement before when this one changes no rows.
  return sqlite3_total_changes64(handle_) == total_before ? 0 : sqlite3_changes64(handle_);
}

Status SqliteConnection::Query(std::string_view sql, const SqlArguments& arguments,
                               const RowCallback& row) {
  TARN_ASSIGN_OR_RETURN(const Use use, Prepare(sql, arguments));
  const RowOf current(use.statement());
  while (true) {
    const int code = sqlite3_step(use.statement());
    if (code == SQLITE_DONE) {
      return {};
    }
    if (code != SQLITE_ROW) {
      return Failure(code, Shortened(sql));
    }
    TARN_ASSIGN_OR_RETURN(const RowAction action, row(current));
    if (action == RowAction::kStop) {
      return {};
    }
  }
}

Result<int64_t> SqliteConnection::LastInsertId() { return sqlite3_last_insert_rowid(handle_); }

bool SqliteConnection::InTransaction() const { return sqlite3_get_autocommit(handle_) == 0; }

}  // namespace tarn::metastore
