// Running a function that has a result inside a SQL transaction of its own. Private to the room.
#pragma once

#include <optional>
#include <utility>

#include "tarn/metastore/database.h"

namespace tarn::dataset {

/// Runs `function(sql)`, which returns a Result, in a write of its own.
template <typename Function>
auto InWrite(metastore::Database& database, metastore::Durability durability,
             const Function& function)
    -> decltype(function(std::declval<metastore::SqlTransaction&>())) {
  using Value = typename decltype(function(std::declval<metastore::SqlTransaction&>()))::ValueType;
  std::optional<Value> value;
  TARN_RETURN_IF_ERROR(database.Write(
      [&](metastore::SqlTransaction& sql) -> Status {
        TARN_ASSIGN_OR_RETURN(value, function(sql));
        return Status::Ok();
      },
      durability));
  return *std::move(value);
}

/// Likewise in a read of its own.
template <typename Function>
auto InRead(metastore::Database& database, const Function& function)
    -> decltype(function(std::declval<metastore::SqlTransaction&>())) {
  using Value = typename decltype(function(std::declval<metastore::SqlTransaction&>()))::ValueType;
  std::optional<Value> value;
  TARN_RETURN_IF_ERROR(database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(value, function(sql));
    return Status::Ok();
  }));
  return *std::move(value);
}

}  // namespace tarn::dataset
