// SortOrder: how the rows of a file are ordered.
#pragma once

#include <cstdint>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/iceberg/json.h"
#include "tarn/iceberg/schema.h"
#include "tarn/iceberg/transform.h"

namespace tarn::iceberg {

enum class SortDirection : uint8_t { kAscending, kDescending };
enum class NullOrder : uint8_t { kFirst, kLast };

struct SortField {
  int32_t source_id = 0;
  Transform transform;
  SortDirection direction = SortDirection::kAscending;
  NullOrder null_order = NullOrder::kFirst;
  friend bool operator==(const SortField&, const SortField&) = default;
};

struct SortOrder {
  int32_t order_id = 0;  // 0 = unsorted, no fields.
  std::vector<SortField> fields;
  friend bool operator==(const SortOrder&, const SortOrder&) = default;
};

/// Errors: kInvalidArgument naming the source column.
Status ValidateSortOrder(const SortOrder& order, const Schema& schema);

Json SortOrderToJson(const SortOrder& order);
Result<SortOrder> SortOrderFromJson(const Json& json);

}  // namespace tarn::iceberg
