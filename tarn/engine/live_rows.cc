#include "tarn/engine/live_rows.h"

#include <algorithm>
#include <charconv>

#include "tarn/engine/quoting.h"

namespace tarn::engine {
namespace {

using ContextHandle = Handle<duckdb_client_context, duckdb_destroy_client_context>;
using ExpressionHandle = Handle<duckdb_expression, duckdb_destroy_expression>;
using ScalarFunctionHandle = Handle<duckdb_scalar_function, duckdb_destroy_scalar_function>;

constexpr size_t kFilesMax = 1 << 24;  // Of one scan.

/// What one call in a statement refers to. Immutable.
struct Bound {
  DeletedRowsOfFiles files;
  std::vector<const DeletedRows*> by_index;  // By file_index of the scan.
};

Status BadDeletes(std::string_view text) {
  return Status::InvalidArgument("\"" + std::string(text) +
                                 "\" are no deleted rows: expected numbers and a name");
}

/// Reads "0-7,9" from the front of `text`, and the space behind.
Result<std::vector<size_t>> TakeNumbers(std::string_view& text) {
  const std::string_view whole = text;
  std::vector<size_t> numbers;
  const auto take = [&text](size_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return error == std::errc();
  };
  while (true) {
    size_t first = 0;
    if (!take(first)) {
      return BadDeletes(whole);
    }
    size_t last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!take(last)) {
        return BadDeletes(whole);
      }
    }
    if (last < first || last >= kFilesMax) {
      return BadDeletes(whole);
    }
    for (size_t number = first; number <= last; ++number) {
      numbers.push_back(number);
    }
    if (text.empty() || (text.front() != ',' && text.front() != ' ')) {
      return BadDeletes(whole);
    }
    const bool ends = text.front() == ' ';
    text.remove_prefix(1);
    if (ends) {
      return numbers;
    }
  }
}

Result<std::string> ConstantText(duckdb_bind_info info, duckdb_client_context context) {
  const ExpressionHandle argument(duckdb_scalar_function_bind_get_argument(info, 0));
  if (!duckdb_expression_is_foldable(argument.get())) {
    return Status::InvalidArgument("the name of deleted rows must be a constant");
  }
  ValueHandle value;
  TARN_RETURN_IF_ERROR(FromDuckError(duckdb_expression_fold(context, argument.get(), value.out())));
  if (value.get() == nullptr || duckdb_is_null_value(value.get())) {
    return Status::InvalidArgument("the name of deleted rows cannot be NULL");
  }
  char* const owned = duckdb_get_varchar(value.get());
  std::string text(owned);
  duckdb_free(owned);
  return text;
}

Result<Bound> BindRows(duckdb_bind_info info, const DeletedRowsRegistry& registry) {
  ContextHandle context;
  duckdb_scalar_function_get_client_context(info, context.out());
  TARN_ASSIGN_OR_RETURN(const std::string text, ConstantText(info, context.get()));
  std::string_view rest = text;
  TARN_ASSIGN_OR_RETURN(const std::vector<size_t> numbers, TakeNumbers(rest));
  const std::string name(rest);
  Bound bound;
  bound.files = registry.Find(duckdb_client_context_get_connection_id(context.get()), name);
  if (bound.files == nullptr) {
    return Status::InvalidArgument("no deleted rows \"" + name + "\" in this session");
  }
  bound.by_index.reserve(numbers.size());
  for (const size_t number : numbers) {
    if (number >= bound.files->size()) {
      return Status::InvalidArgument("deleted rows \"" + name + "\" are of " +
                                     std::to_string(bound.files->size()) + " files, there is no " +
                                     std::to_string(number));
    }
    bound.by_index.push_back(&(*bound.files)[number]);
  }
  return bound;
}

void DeleteBound(void* pointer) { delete static_cast<Bound*>(pointer); }
void* CopyBound(void* pointer) { return new Bound(*static_cast<const Bound*>(pointer)); }

void Bind(duckdb_bind_info info) {
  const auto* registry =
      static_cast<const DeletedRowsRegistry*>(duckdb_scalar_function_bind_get_extra_info(info));
  Result<Bound> bound = BindRows(info, *registry);
  if (!bound.ok()) {
    duckdb_scalar_function_bind_set_error(info, bound.status().message().c_str());
    return;
  }
  duckdb_scalar_function_set_bind_data(info, new Bound(std::move(bound).value()), DeleteBound);
  duckdb_scalar_function_set_bind_data_copy(info, CopyBound);
}

void IsLive(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
  const auto& bound = *static_cast<const Bound*>(duckdb_scalar_function_get_bind_data(info));
  const auto count = static_cast<size_t>(duckdb_data_chunk_get_size(input));
  const auto* files =
      static_cast<const uint64_t*>(duckdb_vector_get_data(duckdb_data_chunk_get_vector(input, 1)));
  const auto* rows =
      static_cast<const int64_t*>(duckdb_vector_get_data(duckdb_data_chunk_get_vector(input, 2)));
  auto* live = static_cast<bool*>(duckdb_vector_get_data(output));
  for (size_t begin = 0; begin < count;) {
    const uint64_t file = files[begin];
    size_t end = begin + 1;
    while (end < count && files[end] == file) {
      ++end;
    }
    if (file >= bound.by_index.size()) {
      const std::string error = "a scan of " + std::to_string(bound.by_index.size()) +
                                " files has no file " + std::to_string(file);
      duckdb_scalar_function_set_error(info, error.c_str());
      return;
    }
    bound.by_index[file]->MarkLive({rows + begin, end - begin}, live + begin);
    begin = end;
  }
}

}  // namespace

std::string FormatDeletes(std::span<const size_t> numbers, std::string_view name) {
  std::string text;
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
      ++end;
    }
    text += (text.empty() ? "" : ",") + std::to_string(numbers[begin]);
    if (end - begin > 1) {
      text += "-" + std::to_string(numbers[end - 1]);
    }
    begin = end;
  }
  return text + " " + std::string(name);
}

Status DeletedRowsRegistry::Install(duckdb_connection connection) {
  const ScalarFunctionHandle function(duckdb_create_scalar_function());
  duckdb_scalar_function_set_name(function.get(), "tarn_is_live");
  const TypeHandle text(duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR));
  const TypeHandle number(duckdb_create_logical_type(DUCKDB_TYPE_BIGINT));
  const TypeHandle file_index(duckdb_create_logical_type(DUCKDB_TYPE_UBIGINT));
  const TypeHandle truth(duckdb_create_logical_type(DUCKDB_TYPE_BOOLEAN));
  for (const duckdb_logical_type type : {text.get(), file_index.get(), number.get()}) {
    duckdb_scalar_function_add_parameter(function.get(), type);
  }
  duckdb_scalar_function_set_return_type(function.get(), truth.get());
  duckdb_scalar_function_set_extra_info(function.get(), this, nullptr);
  duckdb_scalar_function_set_bind(function.get(), Bind);
  duckdb_scalar_function_set_function(function.get(), IsLive);
  if (duckdb_register_scalar_function(connection, function.get()) == DuckDBError) {
    return Status::Internal("could not register the filter of deleted rows");
  }
  return Status::Ok();
}

void DeletedRowsRegistry::Set(uint64_t connection_id, const std::string& name,
                              DeletedRowsOfFiles files) {
  const std::lock_guard lock(mutex_);
  const std::pair key(connection_id, LowerCase(name));
  if (files == nullptr) {
    sets_.erase(key);
  } else {
    sets_[key] = std::move(files);
  }
}

void DeletedRowsRegistry::Remove(uint64_t connection_id) {
  const std::lock_guard lock(mutex_);
  const auto begin = sets_.lower_bound({connection_id, ""});
  auto end = begin;
  while (end != sets_.end() && end->first.first == connection_id) {
    ++end;
  }
  sets_.erase(begin, end);
}

DeletedRowsOfFiles DeletedRowsRegistry::Find(uint64_t connection_id,
                                             const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = sets_.find({connection_id, LowerCase(name)});
  return found == sets_.end() ? nullptr : found->second;
}

}  // namespace tarn::engine
