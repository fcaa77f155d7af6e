#include <arrow/api.h>
#include <arrow/util/byte_size.h>

#include "tarn/base/arrow_status.h"
#include "tarn/engine/result_types.h"
#include "tarn/engine/session_state.h"

namespace tarn::engine {
namespace {

struct ValueVisitor {
  duckdb_value operator()(std::monostate) const { return duckdb_create_null_value(); }
  duckdb_value operator()(bool v) const { return duckdb_create_bool(v); }
  duckdb_value operator()(int64_t v) const { return duckdb_create_int64(v); }
  duckdb_value operator()(double v) const { return duckdb_create_double(v); }
  duckdb_value operator()(const std::string& v) const {
    return duckdb_create_varchar_length(v.data(), v.size());
  }
  duckdb_value operator()(const std::vector<std::string>& list) const {
    return MakeList(list, DUCKDB_TYPE_VARCHAR);
  }
  duckdb_value operator()(const std::vector<int64_t>& list) const {
    return MakeList(list, DUCKDB_TYPE_BIGINT);
  }

 private:
  template <typename T>
  duckdb_value MakeList(const std::vector<T>& list, duckdb_type type) const {
    std::vector<ValueHandle> owners;
    std::vector<duckdb_value> values;
    for (const T& item : list) {
      owners.emplace_back((*this)(item));
      values.push_back(owners.back().get());
    }
    const TypeHandle element(duckdb_create_logical_type(type));
    duckdb_value none = nullptr;  // An empty list needs an address, too.
    return duckdb_create_list_value(element.get(), values.empty() ? &none : values.data(),
                                    values.size());
  }
};

/// Streams the chunks of one running statement, joined into larger batches.
class ResultStream : public ArrowStream {
 public:
  ResultStream(std::shared_ptr<SessionState> state, QueryOptions options)
      : state_(std::move(state)), options_(std::move(options)) {
    state_->streaming = true;
  }
  ~ResultStream() override { End(); }

  Status Start(std::string_view sql) {
    sql_ = sql;
    PreparedHandle statement;
    if (duckdb_prepare(state_->connection.get(), sql_.c_str(), statement.out()) == DuckDBError) {
      return state_->Failure(duckdb_prepare_error(statement.get()));
    }
    result_ = std::make_unique<ResultHandle>();
    TARN_RETURN_IF_ERROR(
        RunPrepared(*state_, statement.get(), options_.parameters, result_->out()));
    duckdb_result* result = result_->out();
    std::vector<TypeHandle> types;
    std::vector<std::string> names;
    for (idx_t i = 0; i < duckdb_column_count(result); ++i) {
      types.emplace_back(duckdb_column_logical_type(result, i));
      names.emplace_back(duckdb_column_name(result, i));
    }
    Result<ResultTypes> made = ResultTypes::Make(
        ArrowOptionsHandle(duckdb_result_get_arrow_options(result)), std::move(types), names);
    TARN_RETURN_IF_ERROR(made.status());
    types_ = std::make_unique<ResultTypes>(std::move(made).value());
    return Status::Ok();
  }

  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const override {
    return types_->schema();
  }

  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    if (!failure_.ok()) {
      return failure_;
    }
    Result<std::shared_ptr<arrow::RecordBatch>> batch = Collect();
    if (!batch.ok()) {
      failure_ = batch.status();
      End();
      if (failure_.reason() == kReasonLost) {
        failure_ = FindReason();
      }
      return failure_;
    }
    return batch;
  }

 private:
  /// Why the statement fails, by running it again for nothing but that.
  Status FindReason() {
    const Status lost = failure_;
    state_->streaming = true;
    Status again = Start(sql_);
    while (again.ok() && result_ != nullptr) {
      again = StatusOf(Fetch());
    }
    End();
    return again.ok() ? lost : again;
  }

  /// One chunk as a batch; nullptr at the end.
  Result<std::shared_ptr<arrow::RecordBatch>> Fetch() {
    if (result_ == nullptr) {
      return nullptr;
    }
    if (state_->interrupted) {
      return state_->Failure("");
    }
    const ChunkHandle chunk(duckdb_fetch_chunk(*result_->out()));
    if (chunk.get() == nullptr) {
      const char* error = duckdb_result_error(result_->out());
      if (error != nullptr && *error != '\0') {
        return state_->Failure(error);
      }
      End();
      return nullptr;
    }
    return types_->Convert(chunk.get());
  }

  Result<std::shared_ptr<arrow::RecordBatch>> Collect() {
    std::vector<std::shared_ptr<arrow::RecordBatch>> parts;
    int64_t rows = 0;
    int64_t bytes = 0;
    while (rows < options_.batch_rows && bytes < options_.batch_bytes) {
      TARN_ASSIGN_OR_RETURN(auto part, Fetch());
      if (part == nullptr) {
        break;
      }
      if (part->num_rows() > 0) {
        rows += part->num_rows();
        bytes += arrow::util::TotalBufferSize(*part);
        parts.push_back(std::move(part));
      }
    }
    if (parts.empty()) {
      return nullptr;
    }
    if (parts.size() == 1) {
      return parts.front();
    }
    TARN_ASSIGN_OR_RETURN(auto joined, arrow::ConcatenateRecordBatches(parts));
    return joined;
  }

  void End() {
    result_.reset();
    state_->streaming = false;
  }

  std::shared_ptr<SessionState> state_;
  QueryOptions options_;
  std::string sql_;
  std::unique_ptr<ResultHandle> result_;
  std::unique_ptr<ResultTypes> types_;
  Status failure_;
};

class StreamReader : public arrow::RecordBatchReader {
 public:
  explicit StreamReader(std::unique_ptr<ArrowStream> stream) : stream_(std::move(stream)) {}
  [[nodiscard]] std::shared_ptr<arrow::Schema> schema() const override { return stream_->schema(); }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    Result<std::shared_ptr<arrow::RecordBatch>> next = stream_->Next();
    if (!next.ok()) {
      return ToArrow(next.status());
    }
    *batch = *std::move(next);
    return arrow::Status::OK();
  }

 private:
  std::unique_ptr<ArrowStream> stream_;
};

}  // namespace

Status SessionState::Failure(std::string_view text) const {
  Status own = failure->Take();
  if (interrupted) {
    return {ErrorCode::kCancelled, "the statement was interrupted"};
  }
  if (!own.ok()) {
    return own;
  }
  Status told = FromDuckText(text);
  if (told.code() == ErrorCode::kCancelled) {
    return Status::Unavailable(
               "the statement failed in one of its threads, and which failure it was got lost: try "
               "it again")
        .WithReason(std::string(kReasonLost));
  }
  return told;
}

uint64_t SessionState::ConnectionId() const {
  duckdb_client_context context = nullptr;
  duckdb_connection_get_client_context(connection.get(), &context);
  const uint64_t id = duckdb_client_context_get_connection_id(context);
  duckdb_destroy_client_context(&context);
  return id;
}

Status SessionState::CheckIdle() const {
  if (interrupted) {
    return {ErrorCode::kCancelled, "the session was interrupted"};
  }
  if (streaming) {
    return Status::FailedPrecondition(
        "a result of this session is still being read; finish or drop it first");
  }
  return Status::Ok();
}

Status RunPrepared(SessionState& state, duckdb_prepared_statement statement,
                   const std::vector<SqlValue>& parameters, duckdb_result* result) {
  const size_t expected = duckdb_nparams(statement);
  if (expected != parameters.size()) {
    return Status::InvalidArgument("the statement has " + std::to_string(expected) +
                                   " parameters, " + std::to_string(parameters.size()) +
                                   " values were given");
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ValueHandle value(std::visit(ValueVisitor{}, parameters[i]));
    if (value.get() == nullptr || duckdb_bind_value(statement, i + 1, value.get()) == DuckDBError) {
      return Status::InvalidArgument("parameter " + std::to_string(i + 1) + " cannot be bound");
    }
  }
  PendingHandle pending;
  if (duckdb_pending_prepared_streaming(statement, pending.out()) == DuckDBError) {
    return state.Failure(duckdb_pending_error(pending.get()));
  }
  // An interrupt before this line was forgotten by the start of the statement; from here on the
  // engine sees it itself.
  if (state.interrupted) {
    return state.Failure("");
  }
  if (duckdb_execute_pending(pending.get(), result) == DuckDBError) {
    const char* error = duckdb_result_error(result);
    return state.Failure(error == nullptr ? duckdb_pending_error(pending.get()) : error);
  }
  return Status::Ok();
}

Result<std::unique_ptr<ArrowStream>> OpenResultStream(std::shared_ptr<SessionState> state,
                                                      std::string_view sql, QueryOptions options) {
  TARN_RETURN_IF_ERROR(state->CheckIdle());
  if (options.batch_rows < 1 || options.batch_bytes < 1) {
    return Status::InvalidArgument("batch_rows and batch_bytes must be positive");
  }
  auto stream = std::make_unique<ResultStream>(std::move(state), std::move(options));
  TARN_RETURN_IF_ERROR(stream->Start(sql));
  return std::unique_ptr<ArrowStream>(std::move(stream));
}

Result<std::shared_ptr<arrow::Table>> ReadAll(ArrowStream& stream) {
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  while (true) {
    TARN_ASSIGN_OR_RETURN(auto batch, stream.Next());
    if (batch == nullptr) {
      break;
    }
    batches.push_back(std::move(batch));
  }
  TARN_ASSIGN_OR_RETURN(auto table, arrow::Table::FromRecordBatches(stream.schema(), batches));
  return table;
}

std::shared_ptr<arrow::RecordBatchReader> MakeReader(std::unique_ptr<ArrowStream> stream) {
  return std::make_shared<StreamReader>(std::move(stream));
}

}  // namespace tarn::engine
