#include "tarn/iceberg/wire/content_file_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tarn/base/hash.h"

namespace tarn::iceberg {

namespace {

std::string LowerCase(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

void AddCounts(Json& json, const char* name, const FieldMap<int64_t>& counts,
               const std::set<int32_t>& counted) {
  Json keys = Json::array();
  Json values = Json::array();
  for (const auto& [id, count] : counts) {
    if (counted.contains(id)) {
      keys.push_back(id);
      values.push_back(count);
    }
  }
  if (!keys.empty()) {
    json[name] = {{"keys", std::move(keys)}, {"values", std::move(values)}};
  }
}

template <typename T>
void AddIf(Json& json, const char* name, const std::optional<T>& value) {
  if (value) {
    json[name] = *value;
  }
}

const char* ContentName(DataFileContent content) {
  return content == DataFileContent::kData              ? "data"
         : content == DataFileContent::kPositionDeletes ? "position-deletes"
                                                        : "equality-deletes";
}

}  // namespace

Result<Json> ContentFileToJson(const DataFile& file, const ContentFileContext& context) {
  const std::vector<Type> types = PartitionTypes(context.spec, context.schema);
  Json partition = Json::array();
  for (size_t i = 0; i < std::min(types.size(), file.partition.size()); ++i) {
    TARN_ASSIGN_OR_RETURN(Json value, LiteralToJson(types[i], file.partition[i]));
    partition.push_back(std::move(value));
  }
  Json json = {{"spec-id", file.spec_id},           {"content", ContentName(file.content)},
               {"file-path", file.file_path},       {"file-format", LowerCase(file.file_format)},
               {"partition", std::move(partition)}, {"file-size-in-bytes", file.file_size_bytes},
               {"record-count", file.record_count}};
  if (file.key_metadata) {
    json["key-metadata"] = EncodeHex(*file.key_metadata);
  }
  if (!file.split_offsets.empty()) {
    json["split-offsets"] = file.split_offsets;
  }
  AddIf(json, "sort-order-id", file.sort_order_id);
  if (file.content == DataFileContent::kData) {
    AddIf(json, "first-row-id", file.first_row_id);
    AddCounts(json, "column-sizes", file.column_sizes, context.counted);
    AddCounts(json, "value-counts", file.value_counts, context.counted);
    AddCounts(json, "null-value-counts", file.null_value_counts, context.counted);
    AddCounts(json, "nan-value-counts", file.nan_value_counts, context.counted);
    return json;
  }
  AddIf(json, "referenced-data-file", file.referenced_data_file);
  AddIf(json, "content-offset", file.content_offset);
  AddIf(json, "content-size-in-bytes", file.content_size_bytes);
  if (!file.equality_ids.empty()) {
    json["equality-ids"] = file.equality_ids;
  }
  return json;
}

}  // namespace tarn::iceberg
