#include "tarn/engine/arrow_source.h"

#include <algorithm>
#include <atomic>
#include <cctype>

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/compute/api.h>

#include "tarn/base/arrow_status.h"

namespace tarn::engine {
namespace {

constexpr int64_t kReaderThreadsMax = 64;

/// One projected column of a scan.
struct ScanColumnState {
  int index = 0;
  std::shared_ptr<arrow::Field> field;    // As exported: dictionaries are decoded.
  std::shared_ptr<arrow::Schema> schema;  // Of `field` alone.
  ArrowTypesHandle types;
  idx_t output = 0;  // Index of the output vector.
};

struct BindState {
  std::shared_ptr<const ArrowSource> source;
  ArrowSourceRegistry* registry;
};

/// Shared by the threads of one scan.
struct GlobalState {
  std::shared_ptr<const ArrowSource> source;
  duckdb_connection connection = nullptr;
  std::vector<ScanColumnState> columns;
  std::atomic<size_t> next_batch{0};
  std::mutex reader_mutex;
  std::shared_ptr<arrow::RecordBatchReader> reader;  // Guarded by reader_mutex.
};

struct LocalState {
  int64_t row_count = 0;
  int64_t offset = 0;
  std::vector<std::shared_ptr<arrow::Array>> columns;
};

template <typename T>
void Delete(void* pointer) {
  delete static_cast<T*>(pointer);
}

std::shared_ptr<arrow::DataType> PlainType(const std::shared_ptr<arrow::DataType>& type) {
  if (type->id() == arrow::Type::DICTIONARY) {
    return static_cast<const arrow::DictionaryType&>(*type).value_type();
  }
  return type;
}

std::shared_ptr<arrow::Field> PlainField(const arrow::Field& field) {
  return arrow::field(field.name(), PlainType(field.type()), true);
}

Result<ArrowTypesHandle> ConvertSchema(duckdb_connection connection, const arrow::Schema& schema) {
  ArrowSchema exported;
  TARN_RETURN_IF_ERROR(arrow::ExportSchema(schema, &exported));
  ArrowTypesHandle types;
  Status status = FromDuckError(duckdb_schema_from_arrow(connection, &exported, types.out()));
  if (exported.release != nullptr) {
    exported.release(&exported);
  }
  TARN_RETURN_IF_ERROR(status);
  return types;
}

/// A chunk of one column that owns `array`. Each column gets a chunk of its own because a chunk of
/// many columns ties all of them to the life of the first.
Result<ChunkHandle> ConvertColumn(duckdb_connection connection,
                                  const std::shared_ptr<arrow::Schema>& schema,
                                  const ArrowTypesHandle& types,
                                  std::shared_ptr<arrow::Array> array) {
  const int64_t row_count = array->length();
  const auto batch = arrow::RecordBatch::Make(schema, row_count, {std::move(array)});
  ArrowArray exported;
  TARN_RETURN_IF_ERROR(arrow::ExportRecordBatch(*batch, &exported));
  ChunkHandle chunk;
  Status status =
      FromDuckError(duckdb_data_chunk_from_arrow(connection, &exported, types.get(), chunk.out()));
  if (exported.release != nullptr) {
    exported.release(&exported);
  }
  TARN_RETURN_IF_ERROR(status);
  return chunk;
}

void Bind(duckdb_bind_info info) {
  auto* registry = static_cast<ArrowSourceRegistry*>(duckdb_bind_get_extra_info(info));
  const ValueHandle parameter(duckdb_bind_get_parameter(info, 0));
  std::shared_ptr<const ArrowSource> source = registry->Find(duckdb_get_int64(parameter.get()));
  duckdb_client_context context = nullptr;
  duckdb_table_function_get_client_context(info, &context);
  const uint64_t connection_id = duckdb_client_context_get_connection_id(context);
  duckdb_destroy_client_context(&context);
  if (source == nullptr || source->connection_id != connection_id) {
    duckdb_bind_set_error(info, "no such source in this session");
    return;
  }
  Result<std::vector<TypeHandle>> types = EngineTypes(registry->connection(), *source->schema);
  if (!types.ok()) {
    duckdb_bind_set_error(info, types.status().message().c_str());
    return;
  }
  for (int i = 0; i < source->schema->num_fields(); ++i) {
    duckdb_bind_add_result_column(info, source->schema->field(i)->name().c_str(),
                                  (*types)[static_cast<size_t>(i)].get());
  }
  if (!source->factory) {
    duckdb_bind_set_cardinality(info, static_cast<idx_t>(source->row_count), true);
  }
  duckdb_bind_set_bind_data(info, new BindState{std::move(source), registry}, Delete<BindState>);
}

Status PrepareScan(duckdb_init_info info, const BindState& bind, GlobalState& state) {
  state.source = bind.source;
  state.connection = bind.registry->connection();
  const idx_t count = duckdb_init_get_column_count(info);
  for (idx_t i = 0; i < count; ++i) {
    const idx_t index = duckdb_init_get_column_index(info, i);
    if (index >= static_cast<idx_t>(state.source->schema->num_fields())) {
      continue;  // A virtual column, asked for when only the number of rows matters.
    }
    ScanColumnState column;
    column.index = static_cast<int>(index);
    column.field = PlainField(*state.source->schema->field(column.index));
    column.schema = arrow::schema({column.field});
    TARN_ASSIGN_OR_RETURN(column.types, ConvertSchema(state.connection, *column.schema));
    column.output = i;
    state.columns.push_back(std::move(column));
  }
  if (state.source->factory) {
    TARN_ASSIGN_OR_RETURN(state.reader, state.source->factory());
    duckdb_init_set_max_threads(info, kReaderThreadsMax);
  } else {
    duckdb_init_set_max_threads(info, std::max<size_t>(1, state.source->batches.size()));
  }
  return Status::Ok();
}

void Init(duckdb_init_info info) {
  const auto& bind = *static_cast<BindState*>(duckdb_init_get_bind_data(info));
  auto state = std::make_unique<GlobalState>();
  const Status status = PrepareScan(info, bind, *state);
  if (!status.ok()) {
    bind.source->failure->Set(status);
    duckdb_init_set_error(info, status.message().c_str());
    return;
  }
  duckdb_init_set_init_data(info, state.release(), Delete<GlobalState>);
}

void InitThread(duckdb_init_info info) {
  duckdb_init_set_init_data(info, new LocalState, Delete<LocalState>);
}

/// The next batch of the scan that has rows; nullptr at the end.
Result<std::shared_ptr<arrow::RecordBatch>> NextBatch(GlobalState& global) {
  const ArrowSource& source = *global.source;
  if (!source.factory) {
    const size_t index = global.next_batch.fetch_add(1);
    return index < source.batches.size() ? source.batches[index] : nullptr;
  }
  const std::lock_guard lock(global.reader_mutex);
  while (true) {
    std::shared_ptr<arrow::RecordBatch> batch;
    TARN_RETURN_IF_ERROR(global.reader->ReadNext(&batch));
    if (batch == nullptr || batch->num_rows() > 0) {
      if (batch != nullptr && !batch->schema()->Equals(*source.schema, false)) {
        return Status::InvalidArgument("a batch has the schema {" + batch->schema()->ToString() +
                                       "}, declared was {" + source.schema->ToString() + "}");
      }
      return batch;
    }
  }
}

Status ScanChunk(GlobalState& global, LocalState& local, duckdb_data_chunk output) {
  if (local.offset >= local.row_count) {
    TARN_ASSIGN_OR_RETURN(const std::shared_ptr<arrow::RecordBatch> batch, NextBatch(global));
    local = {};
    if (batch == nullptr) {
      duckdb_data_chunk_set_size(output, 0);
      return Status::Ok();
    }
    local.row_count = batch->num_rows();
    for (const ScanColumnState& column : global.columns) {
      std::shared_ptr<arrow::Array> array = batch->column(column.index);
      if (array->type_id() == arrow::Type::DICTIONARY) {
        TARN_ASSIGN_OR_RETURN(array, arrow::compute::Cast(*array, column.field->type()));
      }
      local.columns.push_back(std::move(array));
    }
  }
  const int64_t count =
      std::min<int64_t>(static_cast<int64_t>(duckdb_vector_size()), local.row_count - local.offset);
  for (size_t i = 0; i < global.columns.size(); ++i) {
    const ScanColumnState& column = global.columns[i];
    TARN_ASSIGN_OR_RETURN(const ChunkHandle chunk,
                          ConvertColumn(global.connection, column.schema, column.types,
                                        local.columns[i]->Slice(local.offset, count)));
    duckdb_vector_reference_vector(duckdb_data_chunk_get_vector(output, column.output),
                                   duckdb_data_chunk_get_vector(chunk.get(), 0));
  }
  local.offset += count;
  duckdb_data_chunk_set_size(output, static_cast<idx_t>(count));
  return Status::Ok();
}

void Scan(duckdb_function_info info, duckdb_data_chunk output) {
  auto& global = *static_cast<GlobalState*>(duckdb_function_get_init_data(info));
  auto& local = *static_cast<LocalState*>(duckdb_function_get_local_init_data(info));
  const Status status = ScanChunk(global, local, output);
  if (!status.ok()) {
    global.source->failure->Set(status);
    duckdb_function_set_error(info, status.message().c_str());
  }
}

}  // namespace

void FailureSlot::Set(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (status_.ok()) {
    status_ = status;
  }
}

Status FailureSlot::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(status_, Status::Ok());
}

Status ArrowSourceRegistry::Install(duckdb_connection connection) {
  connection_ = connection;
  const TableFunctionHandle function(duckdb_create_table_function());
  duckdb_table_function_set_name(function.get(), "tarn_arrow_source");
  const TypeHandle id_type(duckdb_create_logical_type(DUCKDB_TYPE_BIGINT));
  duckdb_table_function_add_parameter(function.get(), id_type.get());
  duckdb_table_function_supports_projection_pushdown(function.get(), true);
  duckdb_table_function_set_extra_info(function.get(), this, nullptr);
  duckdb_table_function_set_bind(function.get(), Bind);
  duckdb_table_function_set_init(function.get(), Init);
  duckdb_table_function_set_local_init(function.get(), InitThread);
  duckdb_table_function_set_function(function.get(), Scan);
  if (duckdb_register_table_function(connection, function.get()) == DuckDBError) {
    return Status::Internal("could not register the Arrow table function");
  }
  return Status::Ok();
}

int64_t ArrowSourceRegistry::Add(std::shared_ptr<const ArrowSource> source) {
  const std::lock_guard lock(mutex_);
  const int64_t id = next_id_++;
  sources_.emplace(id, std::move(source));
  return id;
}

void ArrowSourceRegistry::Remove(int64_t id) {
  const std::lock_guard lock(mutex_);
  sources_.erase(id);
}

std::shared_ptr<const ArrowSource> ArrowSourceRegistry::Find(int64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = sources_.find(id);
  return found == sources_.end() ? nullptr : found->second;
}

Result<std::vector<TypeHandle>> EngineTypes(duckdb_connection connection,
                                            const arrow::Schema& schema) {
  std::vector<TypeHandle> types;
  for (const auto& field : schema.fields()) {
    const auto alone = arrow::schema({PlainField(*field)});
    const auto context = [&field](const Status& status) {
      return Status::InvalidArgument("column \"" + field->name() + "\" of type " +
                                     field->type()->ToString() +
                                     " cannot be read by SQL: " + status.message());
    };
    Result<ArrowTypesHandle> converted = ConvertSchema(connection, *alone);
    if (!converted.ok()) {
      return context(converted.status());
    }
    TARN_ASSIGN_OR_RETURN(auto empty, arrow::MakeEmptyArray(alone->field(0)->type()));
    Result<ChunkHandle> chunk = ConvertColumn(connection, alone, *converted, std::move(empty));
    if (!chunk.ok()) {
      return context(chunk.status());
    }
    types.emplace_back(
        duckdb_vector_get_column_type(duckdb_data_chunk_get_vector(chunk->get(), 0)));
  }
  return types;
}

}  // namespace tarn::engine
