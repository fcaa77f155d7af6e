// JSON files of a dataset as SQL: documents one after the other, or arrays of them.
#pragma once

#include <string>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/dataset/schema.h"
#include "tarn/format/field_type.h"

namespace tarn::query {

/// What a schema says whose files are JSON: a DataSourceDataFrameReader of the format "json".
inline constexpr std::string_view kDataSourceReader =
    "com.palantir.foundry.spark.input.DataSourceDataFrameReader";

/// True when the schema is for JSON files. Errors: kUnimplemented for another format of a
/// DataSourceDataFrameReader.
Result<bool> IsJson(const dataset::DatasetSchema& schema);

/// "SELECT …": the files one after the other, members by name, a missing one NULL; a value that
/// does not fit its field's type ends the query with the file and line. Errors: kInvalidArgument
/// for a type SQL lacks.
Result<std::string> BuildJsonScan(const std::vector<format::Field>& fields,
                                  const std::vector<std::string>& uris);

}  // namespace tarn::query
