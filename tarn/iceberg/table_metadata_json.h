// TableMetadata as JSON: reads format versions 1 to 3, writes the version the table has.
#pragma once

#include <string>
#include <string_view>

#include "tarn/base/status.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::iceberg {

/// Errors: kInvalidArgument naming the member; kUnimplemented for a format version above 3.
Result<TableMetadata> TableMetadataFromJson(const Json& json);
Json TableMetadataToJson(const TableMetadata& metadata);

Json StatisticsToJson(const StatisticsFile& file);
Result<StatisticsFile> StatisticsFromJson(const Json& json);
Json PartitionStatisticsToJson(const PartitionStatisticsFile& file);
Result<PartitionStatisticsFile> PartitionStatisticsFromJson(const Json& json);

/// Unpacks gzip or zlib data of at most `size_bytes_max`. Errors: kInvalidArgument.
Result<std::string> GunzipBounded(std::string_view bytes, size_t size_bytes_max);

/// As above on text; gzip is recognised by its first bytes and unpacked (at most 1 GiB).
Result<TableMetadata> ParseTableMetadata(std::string_view text);
/// Compact JSON, members in the order other writers use. Same value, same bytes.
std::string FormatTableMetadata(const TableMetadata& metadata);
/// The same with a subset of snapshots: only those that a branch or tag points to.
std::string FormatTableMetadataRefsOnly(const TableMetadata& metadata);

}  // namespace tarn::iceberg
