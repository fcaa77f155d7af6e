// EqualityDeletes: the equality delete files of a scan as views of an engine session, and the joins
// that leave deleted rows out.
//
// A delete applies to rows with a lower data sequence number in its own partition, or everywhere
// when its spec is unpartitioned. Of equal deletes only the newest counts, so each row meets at
// most one and the joins do not multiply rows. Only for this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tarn/base/status.h"
#include "tarn/engine/engine.h"
#include "tarn/iceberg/scan.h"
#include "tarn/iceberg/table_metadata.h"

namespace tarn::lakehouse {

/// Scope of deletes that apply in every partition.
inline constexpr int64_t kEverywhere = -1;

/// One owner thread.
class EqualityDeletes {
 public:
  explicit EqualityDeletes(const iceberg::TableMetadata& metadata) : metadata_(metadata) {}

  /// Takes in the equality deletes of a file. Errors: kUnimplemented naming the delete file for
  /// formats other than Parquet and for members of structs; kCorruption for unknown columns.
  Status Add(const iceberg::FileScanTask& task);
  [[nodiscard]] bool empty() const { return sets_.empty(); }

  /// Columns that the deletes compare, by field id.
  [[nodiscard]] std::vector<iceberg::SchemaField> Columns() const;
  /// Number of the partition that a file is in.
  int64_t ScopeOf(const iceberg::DataFile& file);

  /// Makes the views; names begin with `name`.
  Status MakeViews(engine::Session& session, const std::string& name);
  /// Joins and condition over a relation `s` with the columns tarn_seq and tarn_scope;
  /// `columns`: the name in `s` of each compared field.
  struct Joins {
    std::string joins;
    std::string condition;
  };
  [[nodiscard]] Joins JoinText(const std::map<int32_t, std::string>& columns) const;

 private:
  // Delete files that compare the same columns.
  struct Set {
    std::vector<iceberg::SchemaField> columns;
    std::vector<iceberg::DeleteFilePtr> files;
    std::vector<int64_t> scopes;  // Of each file.
    std::string view;
  };
  struct PartitionHash {
    size_t operator()(const std::pair<int32_t, iceberg::PartitionValues>& key) const;
  };

  const iceberg::TableMetadata& metadata_;
  std::map<std::vector<int32_t>, Set> sets_;  // By field ids, ascending.
  std::set<std::string> known_;               // Paths of delete files.
  std::unordered_map<std::pair<int32_t, iceberg::PartitionValues>, int64_t, PartitionHash> scopes_;
};

/// The newest schema's top-level field of that id; null when it is none.
const iceberg::SchemaField* FindColumn(const iceberg::TableMetadata& metadata, int32_t id);

/// "[n0, n1, …][index + 1]", or less: numbers by a BIGINT column that counts from 0.
std::string NumberByIndex(std::span<const int64_t> numbers, const std::string& index);

}  // namespace tarn::lakehouse
