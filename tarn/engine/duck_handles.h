// Owners of the C handles of DuckDB, and its errors as Status. Only for this room's .cc files.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <duckdb.h>

#include "tarn/base/status.h"

namespace tarn::engine {

/// Unique owner of one handle that `kDestroy` frees.
template <typename T, void (*kDestroy)(T*)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T value) : value_(value) {}
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, T{})) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      Reset();
      value_ = std::exchange(other.value_, T{});
    }
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { Reset(); }

  [[nodiscard]] T get() const { return value_; }
  /// For functions that fill a handle.
  T* out() {
    Reset();
    return &value_;
  }
  void Reset() {
    if (value_ != T{}) {
      kDestroy(&value_);
      value_ = T{};
    }
  }

 private:
  T value_{};
};

using DatabaseHandle = Handle<duckdb_database, duckdb_close>;
using ConnectionHandle = Handle<duckdb_connection, duckdb_disconnect>;
using ConfigHandle = Handle<duckdb_config, duckdb_destroy_config>;
using PreparedHandle = Handle<duckdb_prepared_statement, duckdb_destroy_prepare>;
using PendingHandle = Handle<duckdb_pending_result, duckdb_destroy_pending>;
using ChunkHandle = Handle<duckdb_data_chunk, duckdb_destroy_data_chunk>;
using TypeHandle = Handle<duckdb_logical_type, duckdb_destroy_logical_type>;
using ValueHandle = Handle<duckdb_value, duckdb_destroy_value>;
using ArrowOptionsHandle = Handle<duckdb_arrow_options, duckdb_destroy_arrow_options>;
using ArrowTypesHandle =
    Handle<duckdb_arrow_converted_schema, duckdb_destroy_arrow_converted_schema>;
using TableFunctionHandle = Handle<duckdb_table_function, duckdb_destroy_table_function>;

/// A result, which is a struct and not a pointer.
class ResultHandle {
 public:
  ResultHandle() = default;
  ResultHandle(const ResultHandle&) = delete;
  ResultHandle& operator=(const ResultHandle&) = delete;
  ~ResultHandle() { duckdb_destroy_result(&result_); }
  duckdb_result* out() { return &result_; }

 private:
  duckdb_result result_{};
};

/// Maps the text of a DuckDB error ("Binder Error: …") to a Status. The kind is the text's first
/// words, which DuckDB derives from the type of the error; the excerpt of the statement that
/// follows is cut off.
Status FromDuckText(std::string_view text);
/// Takes and frees an error object; OK when there is none.
Status FromDuckError(duckdb_error_data error);

}  // namespace tarn::engine
