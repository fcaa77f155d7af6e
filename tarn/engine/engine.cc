#include "tarn/engine/engine.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <arrow/api.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/deleted_rows.h"
#include "tarn/engine/quoting.h"
#include "tarn/engine/result_types.h"
#include "tarn/engine/session_state.h"

namespace tarn::engine {
namespace {

constexpr int64_t kPieceRows = 1 << 17;  // Of a registered batch: what one thread takes at a time.

Status RunSql(duckdb_connection connection, const std::string& sql) {
  ResultHandle result;
  if (duckdb_query(connection, sql.c_str(), result.out()) == DuckDBError) {
    return FromDuckText(duckdb_result_error(result.out()));
  }
  return Status::Ok();
}

Status SetOption(duckdb_config config, const char* name, const std::string& value) {
  if (duckdb_set_config(config, name, value.c_str()) == DuckDBError) {
    return Status::InvalidArgument(std::string("the SQL engine refuses ") + name + " = " + value);
  }
  return Status::Ok();
}

Status CheckOptions(const EngineOptions& options) {
  if (options.memory_limit_bytes < (16ULL << 20)) {
    return Status::InvalidArgument("memory_limit_bytes is " +
                                   std::to_string(options.memory_limit_bytes) +
                                   ", the least is 16 MiB");
  }
  if (options.threads < 1 || options.threads > 1024) {
    return Status::InvalidArgument("threads is " + std::to_string(options.threads) +
                                   ", allowed are 1 to 1024");
  }
  for (const std::string& file : options.extension_files) {
    if (!std::filesystem::exists(file)) {
      return Status::NotFound("extension file " + file + " does not exist");
    }
  }
  return Status::Ok();
}

Status OpenDatabase(const EngineOptions& options, DatabaseHandle& database) {
  ConfigHandle config;
  if (duckdb_create_config(config.out()) == DuckDBError) {
    return Status::Internal("could not create the configuration of the SQL engine");
  }
  const auto bytes = [](uint64_t count) { return std::to_string(count) + "B"; };
  const std::vector<std::pair<const char*, std::string>> settings = {
      {"memory_limit", bytes(options.memory_limit_bytes)},
      {"threads", std::to_string(options.threads)},
      {"temp_directory", options.temp_directory},
      {"preserve_insertion_order", options.row_order == RowOrder::kPreserve ? "true" : "false"},
      {"autoinstall_known_extensions", "false"},
      {"autoload_known_extensions", "false"},
      {"allow_community_extensions", "false"},
      {"allow_persistent_secrets", "false"},
  };
  for (const auto& [name, value] : settings) {
    TARN_RETURN_IF_ERROR(SetOption(config.get(), name, value));
  }
  char* error = nullptr;
  if (duckdb_open_ext(nullptr, database.out(), config.get(), &error) == DuckDBError) {
    Status status = FromDuckText(error == nullptr ? "" : error);
    duckdb_free(error);
    return status.WithContext("opening the SQL engine");
  }
  return Status::Ok();
}

/// Loads what may be loaded, then shuts the instance off from files and settings.
Status Lock(const EngineOptions& options, duckdb_connection connection) {
  for (const std::string& file : options.extension_files) {
    TARN_RETURN_IF_ERROR(RunSql(connection, "LOAD " + QuoteText(file)));
  }
  std::vector<std::string> directories;
  for (const std::string& directory : options.allowed_directories) {
    directories.push_back(directory.ends_with('/') ? directory : directory + "/");
  }
  // Given at opening, the limit would be forgotten when the temporary directory is set.
  const uint64_t temp_bytes = options.temp_directory.empty() ? 0 : options.temp_bytes_max;
  TARN_RETURN_IF_ERROR(RunSql(
      connection, "SET GLOBAL max_temp_directory_size = '" + std::to_string(temp_bytes) + "B'"));
  TARN_RETURN_IF_ERROR(RunSql(connection, "SET GLOBAL TimeZone = 'UTC'"));
  TARN_RETURN_IF_ERROR(
      RunSql(connection, "SET GLOBAL allowed_directories = " + QuoteTextList(directories)));
  TARN_RETURN_IF_ERROR(RunSql(connection, "SET GLOBAL enable_external_access = false"));
  return RunSql(connection, "SET GLOBAL lock_configuration = true");
}

Status CheckColumnNames(const arrow::Schema& schema) {
  std::set<std::string> seen;
  for (const auto& field : schema.fields()) {
    if (!seen.insert(LowerCase(field->name())).second) {
      return Status::InvalidArgument("column \"" + field->name() +
                                     "\" is there twice (names are compared without case)");
    }
  }
  if (schema.num_fields() == 0) {
    return Status::InvalidArgument("a relation needs at least one column");
  }
  return Status::Ok();
}

}  // namespace

struct Session::Core {
  std::shared_ptr<SessionState> state;

  /// Gives `source` a name, in place of what had it.
  Status Register(std::string_view name, ArrowSource source);
};

Engine::Engine(std::shared_ptr<Core> core) : core_(std::move(core)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Open(EngineOptions options) {
  TARN_RETURN_IF_ERROR(CheckOptions(options));
  auto core = std::make_shared<Core>();
  TARN_RETURN_IF_ERROR(OpenDatabase(options, core->database));
  if (duckdb_connect(core->database.get(), core->conversion_connection.out()) == DuckDBError) {
    return Status::Internal("could not connect to the SQL engine");
  }
  const duckdb_connection connection = core->conversion_connection.get();
  TARN_RETURN_IF_ERROR(core->registry.Install(connection));
  TARN_RETURN_IF_ERROR(core->deleted_rows.Install(connection));
  TARN_RETURN_IF_ERROR(Lock(options, connection).WithContext("opening the SQL engine"));
  return std::unique_ptr<Engine>(new Engine(std::move(core)));
}

Result<std::unique_ptr<Session>> Engine::OpenSession() {
  auto session = std::make_unique<Session::Core>();
  session->state = std::make_shared<SessionState>();
  session->state->engine = core_;
  if (duckdb_connect(core_->database.get(), session->state->connection.out()) == DuckDBError) {
    return Status::Internal("could not connect to the SQL engine");
  }
  return std::unique_ptr<Session>(new Session(std::move(session)));
}

std::string Engine::LibraryVersion() { return duckdb_library_version(); }

Session::Session(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Session::~Session() {
  for (const auto& [name, id] : core_->state->sources) {
    core_->state->engine->registry.Remove(id);
  }
  core_->state->engine->deleted_rows.Remove(core_->state->ConnectionId());
}

Result<std::unique_ptr<ArrowStream>> Session::Query(std::string_view sql, QueryOptions options) {
  return OpenResultStream(core_->state, sql, std::move(options));
}

Status Session::Execute(std::string_view sql, std::vector<SqlValue> parameters) {
  SessionState& state = *core_->state;
  TARN_RETURN_IF_ERROR(state.CheckIdle());
  const std::string text(sql);
  Handle<duckdb_extracted_statements, duckdb_destroy_extracted> statements;
  const idx_t count =
      duckdb_extract_statements(state.connection.get(), text.c_str(), statements.out());
  if (count == 0) {
    const char* error = duckdb_extract_statements_error(statements.get());
    return error == nullptr ? Status::InvalidArgument("there is no statement in the text")
                            : state.Failure(error);
  }
  if (!parameters.empty() && count != 1) {
    return Status::InvalidArgument("parameters need one statement, found " + std::to_string(count));
  }
  for (idx_t i = 0; i < count; ++i) {
    PreparedHandle statement;
    if (duckdb_prepare_extracted_statement(state.connection.get(), statements.get(), i,
                                           statement.out()) == DuckDBError) {
      return state.Failure(duckdb_prepare_error(statement.get()));
    }
    ResultHandle result;
    TARN_RETURN_IF_ERROR(RunPrepared(state, statement.get(), parameters, result.out()));
    while (true) {
      const ChunkHandle chunk(duckdb_fetch_chunk(*result.out()));
      if (chunk.get() == nullptr) {
        break;
      }
      if (state.interrupted) {
        return state.Failure("");
      }
    }
    const char* error = duckdb_result_error(result.out());
    if (error != nullptr && *error != '\0') {
      return state.Failure(error);
    }
  }
  return Status::Ok();
}

Result<std::shared_ptr<arrow::Schema>> Session::Describe(std::string_view sql) {
  SessionState& state = *core_->state;
  TARN_RETURN_IF_ERROR(state.CheckIdle());
  const std::string text(sql);
  PreparedHandle statement;
  if (duckdb_prepare(state.connection.get(), text.c_str(), statement.out()) == DuckDBError) {
    return state.Failure(duckdb_prepare_error(statement.get()));
  }
  std::vector<TypeHandle> types;
  std::vector<std::string> names;
  for (idx_t i = 0; i < duckdb_prepared_statement_column_count(statement.get()); ++i) {
    types.emplace_back(duckdb_prepared_statement_column_logical_type(statement.get(), i));
    const char* name = duckdb_prepared_statement_column_name(statement.get(), i);
    names.emplace_back(name);
    duckdb_free(const_cast<char*>(name));
  }
  ArrowOptionsHandle options;
  duckdb_connection_get_arrow_options(state.connection.get(), options.out());
  TARN_ASSIGN_OR_RETURN(const ResultTypes made,
                        ResultTypes::Make(std::move(options), std::move(types), names));
  return made.schema();
}

Result<std::string> Session::Explain(std::string_view sql) {
  TARN_ASSIGN_OR_RETURN(const auto stream, Query("EXPLAIN " + std::string(sql)));
  TARN_ASSIGN_OR_RETURN(const auto table, ReadAll(*stream));
  std::string out;
  for (const auto& chunk : table->column(1)->chunks()) {
    const auto& texts = static_cast<const arrow::StringArray&>(*chunk);
    for (int64_t i = 0; i < texts.length(); ++i) {
      out += texts.GetView(i);
    }
  }
  return out;
}

Status Session::Core::Register(std::string_view name, ArrowSource source) {
  TARN_RETURN_IF_ERROR(state->CheckIdle());
  TARN_RETURN_IF_ERROR(CheckColumnNames(*source.schema));
  if (name.empty() || name.find('\0') != std::string_view::npos) {
    return Status::InvalidArgument("a relation needs a name without NUL characters");
  }
  ArrowSourceRegistry& registry = state->engine->registry;
  // Says which column is at fault, before the engine does without.
  TARN_RETURN_IF_ERROR(StatusOf(EngineTypes(registry.connection(), *source.schema))
                           .WithContext("relation \"" + std::string(name) + "\""));
  source.connection_id = state->ConnectionId();
  source.failure = state->failure;
  const int64_t id = registry.Add(std::make_shared<const ArrowSource>(std::move(source)));
  const Status made = RunSql(state->connection.get(),
                             "CREATE OR REPLACE TEMP VIEW " + QuoteName(name) +
                                 " AS SELECT * FROM tarn_arrow_source(" + std::to_string(id) + ")");
  if (!made.ok()) {
    registry.Remove(id);
    return made.WithContext("registering relation \"" + std::string(name) + "\"");
  }
  const auto [entry, inserted] = state->sources.emplace(LowerCase(name), id);
  if (!inserted) {
    registry.Remove(std::exchange(entry->second, id));
  }
  return Status::Ok();
}

Status Session::RegisterBatches(std::string_view name, std::shared_ptr<arrow::Schema> schema,
                                std::vector<std::shared_ptr<arrow::RecordBatch>> batches) {
  ArrowSource source{.schema = std::move(schema)};
  for (const auto& batch : batches) {
    if (!batch->schema()->Equals(*source.schema, false)) {
      return Status::InvalidArgument("relation \"" + std::string(name) +
                                     "\": a batch has the schema {" + batch->schema()->ToString() +
                                     "}, declared was {" + source.schema->ToString() + "}");
    }
    source.row_count += batch->num_rows();
    for (int64_t offset = 0; offset < batch->num_rows(); offset += kPieceRows) {
      source.batches.push_back(batch->Slice(offset, kPieceRows));
    }
  }
  return core_->Register(name, std::move(source));
}

Status Session::RegisterReader(std::string_view name, std::shared_ptr<arrow::Schema> schema,
                               ReaderFactory factory) {
  return core_->Register(name, {.schema = std::move(schema), .factory = std::move(factory)});
}

Status Session::Unregister(std::string_view name) {
  SessionState& state = *core_->state;
  TARN_RETURN_IF_ERROR(state.CheckIdle());
  const auto entry = state.sources.find(LowerCase(name));
  if (entry == state.sources.end()) {
    return Status::NotFound("no relation \"" + std::string(name) + "\" is registered");
  }
  TARN_RETURN_IF_ERROR(RunSql(state.connection.get(), "DROP VIEW temp." + QuoteName(name)));
  state.engine->registry.Remove(entry->second);
  state.sources.erase(entry);
  return Status::Ok();
}

Status Session::RegisterDeletedRows(std::string_view name, std::vector<DeletedRows> files) {
  SessionState& state = *core_->state;
  TARN_RETURN_IF_ERROR(state.CheckIdle());
  if (name.empty() || name.find('\0') != std::string_view::npos) {
    return Status::InvalidArgument("deleted rows need a name without NUL characters");
  }
  state.engine->deleted_rows.Set(
      state.ConnectionId(), std::string(name),
      files.empty() ? nullptr : std::make_shared<const std::vector<DeletedRows>>(std::move(files)));
  return Status::Ok();
}

void Session::Interrupt() {
  core_->state->interrupted = true;
  duckdb_interrupt(core_->state->connection.get());
}

void Session::Resume() { core_->state->interrupted = false; }

}  // namespace tarn::engine
